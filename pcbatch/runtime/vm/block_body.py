"""A block as a batched function: what it reads, writes, pushes and pops, and its body for all places of a window.

Every operation is evaluated for all places at once, under `vmap`; values shared by all lanes enter it unbatched, so a
product with a shared matrix is one matrix product. Masks, frames and the program counter are the emitter's business.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Any, NamedTuple, assert_never

import jax
import jax.numpy as jnp

from pcbatch.ir.def_use import block_uses, block_writes, pops, pushes, reads, terminator_reads
from pcbatch.ir.liveness import stack_live_out
from pcbatch.ir.ops import Fail, Move, Prim, Print, PureOp, Select
from pcbatch.ir.stack import Pop, Push, StackBlock, StackProgram, Var
from pcbatch.ir.types import ArrayType
from pcbatch.lowering.analysis.cost import unsafe_when_inactive, wants_rows
from pcbatch.lowering.typing.jax_types import from_storage, is_key, storage_type, to_storage
from pcbatch.lowering.typing.trace import JaxprFn
from pcbatch.runtime.vm import indexed_access
from pcbatch.runtime.vm.indexed_access import Batch, Common, Cut, Operand, Whole
from pcbatch.runtime.vm.lane_window import Window
from pcbatch.runtime.vm.named_scopes import scope
from pcbatch.runtime.vm.prints import Shown, prints_of

Values = dict[str, Any]
SMALL = 32  # elements of an array that is kept with the lanes last


class Effects(NamedTuple):
    """What running a block gives, before any mask (values in storage form, [width, ...])."""

    updates: Values  # register -> new value
    placed: Values  # register -> the whole register, stored into in place
    saved: Values  # variable -> value to keep in its slot
    conditions: Values  # what the jump reads -> bool[width]
    printed: Shown
    loaded: Values  # what was read of registers in part, by `parts.load_key`


@dataclass(frozen=True, slots=True)
class BlockCode:
    """One block, ready for emission. `index` is its program counter."""

    index: int
    block: StackBlock
    vars: Mapping[str, Var]
    reads: tuple[str, ...]
    pops: tuple[str, ...]
    updates: tuple[str, ...]
    pushes: tuple[str, ...]
    shared: tuple[str, ...]
    cuts: Mapping[int, Cut]  # position of an operation -> where it touches registers in part
    parted: frozenset[str]  # registers that some operation touches in part
    lanes_last: frozenset[str]  # registers of the program whose last axis are the lanes
    risky: bool  # holds what must not run on values of lanes that are elsewhere
    prints: tuple[Print, ...]
    scope: str  # what it is called in XLA's programs and profiles
    keeps_loads: bool = False  # does `run` give what it reads of registers in part?

    def run(self, window: Window, registers: Values, popped: Values, shared: Values, mask: jax.Array) -> Effects:
        """Evaluate the body for the places of a window; values of places outside `mask` are junk that the caller
        drops. `registers`: [lanes, ...], or [..., lanes] of those that are turned; `popped`: [width, ...]."""
        env: dict[str, Operand] = {v: Common(from_storage(value, self.type(v))) for v, value in shared.items()}
        for v in self.reads:
            here = registers[v]
            env[v] = Whole(here) if v in self.parted else self._batch(v, window.read(here, v in self.lanes_last))
        saved: Values = {}
        printed: list[Values] = []
        loaded: Values = {}
        for position, op in enumerate(self.block.ops):
            match op:
                case Push(dst=dst, src=src):
                    saved[dst] = self._stored(env[src], dst, window)
                case Pop(dst=dst):
                    env[dst] = self._batch(dst, popped[dst])
                case Print():
                    printed.append({v: self._stored(env[v], v, window) for v in reads(op)})
                case _:
                    env.update(self._pure(position, op, env, window, mask, loaded))
        placed = {v: found.array for v in self.updates if isinstance(found := env[v], Whole)}
        updates = {v: self._stored(env[v], v, window) for v in self.updates if v not in placed}
        conditions = {v: self._stored(env[v], v, window) for v in self.conditions}
        return Effects(updates, placed, saved, conditions, tuple(printed), loaded if self.keeps_loads else {})

    @property
    def stores(self) -> bool:
        """Does it write a part of a register?"""
        return any(found.stored for found in self.cuts.values())

    @property
    def unsafe_when_inactive(self) -> bool:
        """Must it not run with no lane waiting for it? Inner loops end only on values of lanes that are here; a
        callback for nobody would be a waste."""
        return self.risky or bool(self.prints)

    @property
    def conditions(self) -> tuple[str, ...]:
        """What the block's jump asks."""
        terminator = self.block.terminator
        return () if isinstance(terminator, Fail) else tuple(dict.fromkeys(terminator_reads(terminator)))

    def _pure(
        self,
        position: int,
        op: PureOp,
        env: Mapping[str, Operand],
        window: Window,
        mask: jax.Array,
        loaded: Values,
    ) -> dict[str, Operand]:
        match op:
            case Prim(dsts=dsts, expr=expr):
                operands = [env[v] for v in expr.ins]
                found = self.cuts.get(position)
                if found is not None and all(isinstance(operands[k], Whole) for k in found.registers):
                    outs, read = indexed_access.run(found, operands, window, mask)
                    loaded.update({indexed_access.load_key(position, step): value for step, value in read.items()})
                    return dict(zip(dsts, outs, strict=True))
                one = (lambda *args: [expr.fn(*args)]) if len(dsts) == 1 else expr.fn  # type: ignore[misc]
                return dict(zip(dsts, indexed_access.batched(one, operands, window), strict=True))
            case Move(dst=dst, src=src):
                return {dst: indexed_access.moved(env[src], window)}
            case Select(dst=dst):
                ins = [env[v] for v in (op.cond, op.on_true, op.on_false)]
                return {dst: indexed_access.batched(lambda c, a, b: [jnp.where(c, a, b)], ins, window)[0]}
            case _:
                assert_never(op)

    def _batch(self, name: str, stored: Any) -> Batch:
        return Batch(from_storage(stored, self.type(name)))

    def _stored(self, operand: Operand, name: str, window: Window) -> Any:
        type_ = self.type(name)
        if isinstance(operand, Common) and is_key(type_):
            operand = Common(to_storage(operand.value, type_))
            return indexed_access.value(operand, window)
        return to_storage(indexed_access.value(operand, window), type_)

    def type(self, name: str) -> ArrayType:
        """The type of a variable; programs are typed before they are emitted."""
        type_ = self.vars[name].type
        assert type_ is not None, name
        return type_


def evaluate(op: PureOp, env: Values, around: Callable[[Any], Any] = lambda fn: fn) -> None:
    """Run one pure operation for one lane; `around` what a primitive does."""
    match op:
        case Prim(dsts=dsts, expr=expr):
            assert expr.fn is not None
            value = around(expr.fn)(*(env[v] for v in expr.ins))
            env.update(zip(dsts, (value,) if len(dsts) == 1 else value, strict=True))
        case Move(dst=dst, src=src):
            env[dst] = env[src]
        case Select():
            env[op.dst] = jnp.where(env[op.cond], env[op.on_true], env[op.on_false])
        case _:
            assert_never(op)


def compile_blocks(program: StackProgram) -> tuple[BlockCode, ...]:
    """The code of every block, in order of program counters."""
    live_out = stack_live_out(program)
    place = {v: k for k, (v, var) in enumerate(program.vars.items()) if _has_register(var)}
    codes = [_compile(program, k, block, live_out[block.label], place) for k, block in enumerate(program.blocks)]
    rows = {v for code in codes for v in (*code.parted, *_in_rows(code.block))}
    turned = frozenset(v for v in place if v not in rows and _is_small(program.vars[v]))
    return tuple(replace(code, lanes_last=turned) for code in codes)


def _in_rows(block: StackBlock) -> set[str]:
    """What kernels of libraries are given."""
    fns = [(op.expr.fn, op.expr.ins) for op in block.ops if isinstance(op, Prim)]
    return {v for fn, ins in fns if isinstance(fn, JaxprFn) and wants_rows(fn.closed.jaxpr) for v in ins}


def _is_small(var: Var) -> bool:
    """Is it an array of few elements? Selecting between a new and an old one is then many times faster along the lanes:
    XLA gives one lane's elements, if neighbours, a few operations and a branch (docs/users/performance.md)."""
    assert var.type is not None
    shape = storage_type(var.type).shape
    return bool(shape) and 0 < math.prod(shape) <= SMALL


def _compile(
    program: StackProgram, index: int, block: StackBlock, live_out: Iterable[str], place: Mapping[str, int]
) -> BlockCode:
    def registers(names: Iterable[str]) -> tuple[str, ...]:
        return tuple(sorted({v for v in names if v in place}, key=place.__getitem__))

    used = block_uses(block)
    cuts = {
        k: found
        for k, op in enumerate(block.ops)
        if isinstance(op, Prim) and (found := indexed_access.cut(op)) is not None
    }
    parted = {block.ops[k].expr.ins[j] for k, found in cuts.items() for j in found.registers}  # type: ignore[union-attr]
    shared = {v for v in used if v in program.vars and v not in place}
    return BlockCode(
        index=index,
        block=block,
        vars=program.vars,
        reads=registers(used),
        pops=tuple(dict.fromkeys(op.dst for op in pops(block))),
        updates=registers(block_writes(block) & set(live_out)),
        pushes=tuple(dict.fromkeys(op.dst for op in pushes(block))),
        shared=tuple(sorted(shared)),
        cuts=cuts,
        parted=frozenset(parted & set(registers(used))),
        lanes_last=frozenset(),
        risky=any(is_risky(op) for op in block.ops),
        prints=prints_of(block.ops),
        scope=scope(block),
    )


def _has_register(var: Var) -> bool:
    return var.storage is not None and var.storage.has_register


def is_risky(op: object) -> bool:
    """Does this operation hold a loop that might not end on junk?"""
    return isinstance(op, Prim) and isinstance(op.expr.fn, JaxprFn) and unsafe_when_inactive(op.expr.fn.closed.jaxpr)
