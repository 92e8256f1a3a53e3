"""Local static autobatching with recursion on the host: Python runs blocks and calls, XLA the code between calls.

The hybrid of section 4 of Radul et al. (MLSys 2020). Program counters and masks are NumPy arrays; variables stay on
the device, and a compiled piece gets only those that it reads or writes. Activations are kept in a list, so depth is
not bounded by Python's stack.
"""

from __future__ import annotations

from collections import ChainMap
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from pcbatch.ir.cfg import Call
from pcbatch.ir.ops import Fail, Return
from pcbatch.lowering.typing.jax_types import zeros
from pcbatch.runtime.local_strategy.counters import Tally
from pcbatch.runtime.local_strategy.function_plans import FunctionPlan, Item, LocalBlock, StraightCode, as_stored
from pcbatch.runtime.local_strategy.staged import Staged, StagedCall
from pcbatch.runtime.vm.block_body import Values
from pcbatch.runtime.vm.lane_window import lane_mask
from pcbatch.runtime.vm.status import why


@dataclass(frozen=True, slots=True)
class CompiledPiece:
    """A part of a block, up to a call that the host makes or to the end of the block."""

    call: Call | None  # the call after it; None at the end of the block
    needs: tuple[str, ...]  # the variables that it reads
    old: tuple[str, ...]  # registers whose old value is merged in
    counts: bool  # it has staged calls or prints, which count
    run: Any  # a jitted function; None: there is nothing to compute


@dataclass(frozen=True, slots=True)
class Host:
    """A recursive program with its compiled pieces: runs it on the host."""

    staged: Staged  # runs the other functions
    tally: Tally
    functions: frozenset[str]  # those that reach a recursive one
    _pieces: dict[Any, tuple[CompiledPiece, ...]] = field(default_factory=dict)

    def run(self, plan: FunctionPlan, args: Sequence[Any], lanes: int) -> tuple[tuple[Any, ...], Values]:
        """Return the results, [lanes, ...] each in storage form (of failed lanes: junk), and the counts."""
        return _HostRun(self, lanes).run(plan, args)

    def pieces(self, plan: FunctionPlan, block: LocalBlock) -> tuple[CompiledPiece, ...]:
        """Return the pieces of a block, which are compiled when they first run."""
        key = (plan.key, block.index)
        if key not in self._pieces:
            self._pieces[key] = tuple(self._split(plan, block))
        return self._pieces[key]

    def _split(self, plan: FunctionPlan, block: LocalBlock) -> list[CompiledPiece]:
        groups: list[tuple[list[Item], Call | None]] = []
        items: list[Item] = []
        for item in block.items:
            if isinstance(item, Call) and item.func in self.functions:
                groups.append((items, item))
                items = []
            else:
                items.append(item)
        groups.append((items, None))
        later: set[str] = set()
        out: list[CompiledPiece] = []
        for items, call in reversed(groups):  # backwards: a piece gives the values that later ones need
            later |= set(call.args if call is not None else (*block.written, *block.cond))
            keeps = tuple(sorted(later & {v for item in items for v in _makes(item)}))
            out.append(self._piece(plan, block, tuple(items), call, keeps))
            later |= set(out[-1].needs)
        return out[::-1]

    def _piece(
        self, plan: FunctionPlan, block: LocalBlock, items: tuple[Item, ...], call: Call | None, keeps: tuple[str, ...]
    ) -> CompiledPiece:
        used: dict[str, None] = {}
        defined: set[str] = set()
        for item in items:
            used |= dict.fromkeys(v for v in _uses(item) if v not in defined)
            defined.update(_makes(item))
        last = call is None
        if last:
            used |= dict.fromkeys(v for v in (*block.written, *block.cond) if v not in defined)

        def piece(given: Values, old: Values, active: Any, counts: Values, depth: Any) -> tuple[Values, Any, Values]:
            env, going, counts = StagedCall(self.staged, plan, depth).items(block, items, given, active, counts)
            if last:
                return plan.landed(block, env, old, going), env[block.cond[0]] if block.cond else None, counts
            # Masked, so that no junk is seen outside.
            masked = {v: env[v] if v in plan.shared else _or_zero(going, env[v]) for v in keeps}
            return masked, None, counts

        piece.__name__ = f"{plan.function.name}_{block.index}".replace(".", "_")
        counting = any(isinstance(item, Call) or bool(item.prints) for item in items)
        busy = bool(keeps) or counting or (last and bool(block.written or block.cond))
        return CompiledPiece(
            call=call,
            needs=tuple(used),
            old=tuple(v for v in block.written if v not in plan.shared) if last else (),
            counts=counting,
            run=jax.jit(piece) if busy else None,
        )


@dataclass(frozen=True, slots=True)
class _Replaced:
    """The results of an activation that a call in tail position has replaced."""

    values: tuple[Any, ...]  # of lanes that had returned before the call
    on: Any  # bool[lanes]: lanes that made the call, whose results are those of the callee


@dataclass(slots=True)
class _Activation:
    """One activation: an open call of a function, for the lanes that make it."""

    plan: FunctionPlan
    depth: int
    registers: Values
    pc: np.ndarray  # int32[lanes]
    active: np.ndarray  # bool[lanes]: of the block that runs
    block: LocalBlock
    left: tuple[CompiledPiece, ...] = ()  # the pieces of the block that have not run
    values: Values = field(default_factory=dict)  # that the block has computed so far
    instead: _Replaced | None = None  # the activation that this one replaces

    @property
    def env(self) -> Mapping[str, Any]:
        """The values that the block may read, by variable."""
        return ChainMap(self.values, self.registers)


class _HostRun:
    """One run on the host: the loop over blocks, and the stack of activations."""

    def __init__(self, host: Host, lanes: int) -> None:
        self.host, self.lanes, self.tally = host, lanes, host.tally
        self.counts = self.tally.start(lanes)
        self._zeros: dict[Any, jax.Array] = {}

    def run(self, plan: FunctionPlan, args: Sequence[Any]) -> tuple[tuple[Any, ...], Values]:
        frames = [self._enter(plan, args, np.ones((self.lanes,), bool), 0)]
        while True:
            callee = self._advance(frames[-1])
            if callee is not None:
                if callee.instead is not None:
                    frames.pop()
                frames.append(callee)
                continue
            done = frames.pop()
            results = _results(done)
            if not frames:
                return results, self.counts
            self._resume(frames[-1], results)

    def _enter(self, plan: FunctionPlan, args: Sequence[Any], active: np.ndarray, depth: int) -> _Activation:
        registers = plan.enter(args, self.lanes, self._zero)
        pc = np.where(active, 0, plan.exit).astype(np.int32)
        self.counts, pc = self.tally.arrive(self.counts, plan.offset, plan.exit, pc)
        return _Activation(plan, depth, registers, pc, active, plan.blocks[0])

    def _zero(self, *what: Any) -> jax.Array:
        if what not in self._zeros:
            self._zeros[what] = zeros(*what)
        return self._zeros[what]

    def _advance(self, frame: _Activation) -> _Activation | None:
        """Run an activation until a call, and return the callee's activation; None when all lanes have returned."""
        while frame.left or self._begin(frame):
            piece, frame.left = frame.left[0], frame.left[1:]
            cond = self._piece(frame, piece) if piece.run is not None else None
            if not self._check(frame):
                continue
            if piece.call is None:
                self._jump(frame, cond)
                continue
            if self._ends(frame, piece.call):
                on = frame.active.copy()
                callee = self._called(frame, piece.call, frame.depth)
                callee.instead = _Replaced(_results(frame), on)
                return callee
            self.counts, frame.active = self.tally.admit(self.counts, frame.block.number, frame.active, frame.depth)
            if self._check(frame):
                return self._called(frame, piece.call, frame.depth + 1)
        return None

    def _called(self, frame: _Activation, call: Call, depth: int) -> _Activation:
        callee = self.host.staged.planner.callee(frame.plan, call)
        return self._enter(callee, [frame.env[a] for a in call.args], frame.active, depth)

    def _ends(self, frame: _Activation, call: Call) -> bool:
        """Whether all lanes that have not returned from the activation return the results of this call.

        Then the callee replaces the activation: calls in tail position use no depth. Results that lanes share forbid
        it: the callee need not share them.
        """
        if len(frame.left) != 1 or not _is_tail(frame.plan, frame.block):
            return False
        callee = self.host.staged.planner.callee(frame.plan, call)
        pairs = zip(frame.plan.function.results, callee.function.results, strict=True)
        alike = all(
            frame.plan.type(a) == callee.type(b) and not {a, b} & (frame.plan.shared | callee.shared) for a, b in pairs
        )
        return alike and bool(np.all(frame.active | (frame.pc == frame.plan.exit)))

    def _begin(self, frame: _Activation) -> bool:
        """Start the earliest block that some lane waits for; blocks with a call in tail position come last.

        Return whether there is one.
        """
        k = int(frame.pc.min())
        if k == frame.plan.exit:
            return False
        if _is_tail(frame.plan, frame.plan.blocks[k]):
            waiting = set(np.unique(frame.pc).tolist()) - {frame.plan.exit}
            k = min(waiting, key=lambda k: (_is_tail(frame.plan, frame.plan.blocks[k]), k))
        frame.block = frame.plan.blocks[k]
        frame.active = frame.pc == k
        frame.left = self.host.pieces(frame.plan, frame.block)
        frame.values = {}
        self.counts = self.tally.block(self.counts, frame.block.number, frame.active)
        return True

    def _piece(self, frame: _Activation, piece: CompiledPiece) -> Any:
        env = frame.env
        given = {v: env[v] for v in piece.needs}
        old = {v: frame.registers[v] for v in piece.old}
        inner = self.host.staged.tally
        counts = {k: self.counts[k] for k in inner.start(0)} if piece.counts else {}
        depth = np.int32(frame.depth) if piece.counts and inner.max_depth is not None else None
        out, cond, counts = piece.run(given, old, frame.active, counts, depth)
        self.counts = {**self.counts, **{k: np.asarray(v) for k, v in counts.items()}}
        if piece.call is None:
            frame.registers = {**frame.registers, **out}
        else:
            frame.values |= out
        return cond

    def _check(self, frame: _Activation) -> bool:
        """Remove failed lanes from the active ones; without any active lane, end the block. Return whether there are
        active lanes."""
        frame.active = self.tally.remaining(self.counts, frame.active)
        if frame.active.any():
            return True
        self._drop(frame)
        frame.left, frame.values = (), {}
        return False

    def _drop(self, frame: _Activation) -> None:
        going = self.tally.remaining(self.counts, np.ones_like(frame.active))
        frame.pc = np.where(going, frame.pc, frame.plan.exit).astype(np.int32)

    def _jump(self, frame: _Activation, cond: Any) -> None:
        plan = frame.plan
        to = plan.target(frame.block, None if cond is None else np.asarray(cond), np.where)
        frame.pc = np.where(frame.active, to, frame.pc).astype(np.int32)
        if isinstance(fail := frame.block.terminator, Fail):
            shown = plan.shown(frame.registers, fail)
            self.counts = self.tally.fail(self.counts, frame.block.number, frame.active, why(fail), shown)
        self._drop(frame)
        self.counts, frame.pc = self.tally.arrive(self.counts, plan.offset, plan.exit, frame.pc)
        frame.values = {}

    def _resume(self, frame: _Activation, results: Sequence[Any]) -> None:
        call = self._pending(frame)
        frame.values |= {d: as_stored(r, frame.plan.type(d)) for d, r in zip(call.dsts, results, strict=True)}
        self._check(frame)

    def _pending(self, frame: _Activation) -> Call:
        """Return the call that the activation waits for: the one before the pieces that have not run."""
        pieces = self.host.pieces(frame.plan, frame.block)
        call = pieces[len(pieces) - len(frame.left) - 1].call
        assert call is not None
        return call


def _is_tail(plan: FunctionPlan, block: LocalBlock) -> bool:
    """Whether a block ends with a call in tail position: one whose results the function returns."""
    last = block.items[-1] if block.items else None
    ends = isinstance(last, Call) and isinstance(block.terminator, Return)
    return ends and last.dsts == plan.function.results  # type: ignore[union-attr]


def _results(frame: _Activation) -> tuple[Any, ...]:
    """Return the results of an activation, with those of lanes of the activations that it replaced."""
    values = tuple(frame.registers[r] for r in frame.plan.function.results)
    if (left := frame.instead) is None:
        return values
    pairs = zip(values, left.values, strict=True)
    return tuple(jnp.where(lane_mask(left.on, value), value, old) for value, old in pairs)


def _uses(item: Item) -> tuple[str, ...]:
    return item.uses if isinstance(item, StraightCode) else item.args


def _makes(item: Item) -> tuple[str, ...]:
    return item.makes if isinstance(item, StraightCode) else item.dsts


def _or_zero(active: Any, value: Any) -> jax.Array:
    return jnp.where(lane_mask(active, value), value, jnp.zeros((), value.dtype))
