"""Derivatives of a run, as operations of JAX.

    Run ── jvp ──> Taped (the run, and its tape) and Tangent (linear) ── transpose ──> Backward

Forward mode is JAX's own, of the machine's loop. Reverse mode undoes the records of the tape (`tape.py`, `back.py`).
Forward over reverse works by JAX's forward mode of `Taped` and `Backward`; reverse over reverse is refused.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from functools import lru_cache, reduce
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from pcbatch.diagnostics import Diagnostic
from pcbatch.errors import UsageError
from pcbatch.ir.stack import StackProgram, Storage
from pcbatch.ir.types import ArrayType
from pcbatch.ir.walk import reads, writes
from pcbatch.lowering.jax_types import storage_type
from pcbatch.runtime import xla
from pcbatch.runtime.blocks import Blocks
from pcbatch.runtime.code import Values
from pcbatch.runtime.emit.guard import Guard
from pcbatch.runtime.layout import Layout, reg
from pcbatch.runtime.machine import Machine, State, spoilt
from pcbatch.runtime.pc import PcExecutable
from pcbatch.runtime.schedule import Drain, Sweep
from pcbatch.runtime.spread import Dealt, Spread
from pcbatch.runtime.status import Status
from pcbatch.runtime.window import lane_mask
from pcbatch.runtime.words import is_float
from pcbatch.transforms import back, tape
from pcbatch.transforms.deferred import deferred
from pcbatch.transforms.fold import folded, unfolded_outs
from pcbatch.transforms.lifted import Axis, Lifted, at_once, one_by_one
from pcbatch.transforms.primitive import bind, types_of
from pcbatch.transforms.pull import any_in_record, sheltered
from pcbatch.transforms.pushed import Pushed, is_inexact, lifted, pushed, refuse
from pcbatch.transforms.tape import HEAD, Tape, TapedLayout, TapedStage

ROOM = "tape:room"  # bool[depth]: how many nested calls there was room for, as a shape
STATUS = "tape:status"  # int32[lanes]
TRACED_VISITS = 256  # records of a block for each lane, on average, where the tape cannot grow
TRACED_BYTES = 2**27  # of such a tape


@dataclass(frozen=True, repr=False)
class Taped:
    """A run that leaves its tape: gives the leaves of the outcome and then the parts of the tape."""

    run: Any  # a `Run`
    tape: Tape
    room: tuple[tuple[int, ...], int] | None = None  # capacities and depth; None: as fits
    silent: bool = False  # has another run printed what lanes have to say?
    name: str = "taped run"

    def __repr__(self) -> str:
        return f"{self.name}[lanes={self.run.lanes}]"

    @property
    def executable(self) -> PcExecutable:
        """What runs."""
        found: PcExecutable = self.run.program.executable
        return found

    @property
    def keys(self) -> tuple[str, ...]:
        """What the parts of the tape are called, in order."""
        return (*self.tape.keys(), STATUS, ROOM)

    def traced(self, *args: Any) -> Sequence[Any]:
        capacities, depth = self.room or (traced_capacities(self), self.executable.traced_depth())
        executable, lanes, given = self.executable, self.run.lanes, self.run.given(*args)
        machine = taped_machine(executable, self.tape, capacities, self.silent)
        arguments = executable.natural({**given.mapped, **given.common})
        state: State = machine.advance(machine.start(arguments, lanes, depth, given.end, given.names))
        outcome = executable.read(state, depth)
        left = {**{key: state.carry[key] for key in self.tape.keys()}, STATUS: outcome.status}
        return [*jax.tree.leaves(outcome), *(left[key] for key in self.keys[:-1]), jnp.zeros((depth,), bool)]

    def now(self, *args: Any) -> Sequence[Any]:
        if self.room is not None:
            return run_now(self, self.executable, self.run.lanes, *args)
        return grown(self, *args)

    def split(self, outs: Sequence[Any]) -> tuple[list[Any], dict[str, Any]]:
        """The leaves of the outcome, and the tape by key."""
        count = len(outs) - len(self.keys)
        return list(outs[:count]), dict(zip(self.keys, outs[count:], strict=True))

    def with_room(self, left: Mapping[str, Any]) -> Taped:
        """The same, with the room that a run had."""
        capacities = tuple(int(left[block.key("link")].shape[-1]) for block in self.tape.blocks)
        return replace(self, room=(capacities, int(left[ROOM].shape[-1])))

    def types(self, avals: Sequence[Any]) -> None:
        """As traced."""

    def lifted(self, size: int, axes: Sequence[Axis]) -> Lifted:
        run = self.run.folded(size, axes)
        if run.program != self.run.program:  # another program has another tape
            return one_by_one(self, size, axes)
        outs = [*self.run.per_lane(), *(key in (HEAD, STATUS) for key in self.keys)]
        floats = [here for here, x in zip(outs, self.like(), strict=True) if is_inexact(x)]
        return Lifted(
            replace(self, run=run),
            lambda k, x, axis: self.run.folded_operand(run, size, k, x, axis),
            lambda found: unfolded_outs(found, outs, size),
            lambda found: unfolded_outs(found, floats, size),
        )

    def like(self) -> list[Any]:
        """Something of the dtype of each result."""
        layout = self.executable.machine.layout
        values = [np.empty((), _stored(layout, v)) for v in layout.program.results]
        structure = self.run.structure()
        outcome = jax.tree.unflatten(structure, [np.int32(0)] * structure.num_leaves)
        shown = {v: np.empty((), _stored(layout, v)) for v in outcome.shown}
        leaves = jax.tree.leaves(replace(outcome, values=tuple(values), shown=shown))
        dtypes = {key: dtype for block in self.tape.blocks for key, (_, dtype) in block.keys().items()}
        return [*leaves, *(np.empty((), dtypes.get(key, np.int32)) for key in self.keys)]

    def push(self, primals: Sequence[Any], tangents: Sequence[Any]) -> tuple[Sequence[Any], Sequence[Any]]:
        outs = bind(self, *primals)
        again = replace(self.with_room(self.split(outs)[1]), silent=True)
        return outs, pushed(again, primals, tangents, outs)

    def pull(self, cotangents: Sequence[Any], args: Sequence[Any]) -> Sequence[Any]:
        raise AssertionError("a taped run is not linear")


def _stored(layout: Layout, name: str) -> Any:
    type_ = layout.program.vars[name].type
    assert type_ is not None
    return jnp.dtype(storage_type(type_).dtype)


def taped_machine(executable: PcExecutable, tape: Tape, capacities: Sequence[int], silent: bool) -> Machine:
    """The machine that records."""
    smooth = executable.smooth
    parts = {f.name: getattr(smooth.layout, f.name) for f in fields(smooth.layout)}
    machine = smooth if silent else executable.machine
    codes = tuple(replace(code, keeps_loads=True) for code in machine.layout.codes)
    layout = TapedLayout(**{**parts, "codes": codes}, tape=tape, capacities=tuple(capacities))
    return replace(smooth, layout=layout, emitter=Guard(), stage=TapedStage)


def traced_capacities(taped: Taped) -> tuple[int, ...]:
    """Room for records where the tape cannot grow."""
    lanes, blocks = taped.run.lanes, taped.tape.blocks
    visits = taped.executable.options.max_tape
    if visits is None:
        each = max(1, sum(block.bytes() for block in blocks))
        visits = max(16, min(TRACED_VISITS, TRACED_BYTES // (lanes * each)))
    return (lanes * visits,) * len(blocks)


def run_now(operation: Operation, executable: PcExecutable, lanes: int, *args: Any) -> list[Any]:
    """The result for arrays that are known, outside traces."""
    options = xla.compiler_options(executable.kernel, lanes, in_place=False)  # XLA gets a backward run wrong with it
    found: list[Any] = _compiled(operation, None if options is None else tuple(options.items()))(*args)
    return found


@lru_cache(maxsize=256)
def _compiled(operation: Operation, options: tuple[tuple[str, Any], ...] | None) -> Any:
    return jax.jit(
        lambda *args: list(operation.traced(*args)), compiler_options=None if options is None else dict(options)
    )


def grown(taped: Taped, *args: Any) -> list[Any]:
    """A taped run with as much room as it needs, found by trying."""
    executable, lanes = taped.executable, taped.run.lanes
    known = executable.tapes.get((taped.tape.shared, lanes))
    capacities = known or (16 * lanes,) * len(taped.tape.blocks)
    if executable.options.max_tape is not None:
        capacities = traced_capacities(taped)
    depth = executable.depth
    while True:
        sized = replace(taped, room=(capacities, depth), silent=taped.silent or executable.prints)
        outs = run_now(sized, executable, lanes, *args)
        left = taped.split(outs)[1]
        counts = [int(left[block.count]) for block in taped.tape.blocks]
        deeper = executable.may_grow(left[STATUS], depth, Spread(None, lanes))
        if deeper:
            depth *= 2
        elif all(n <= c for n, c in zip(counts, capacities, strict=True)):
            executable.remember(depth)
            executable.tapes[taped.tape.shared, lanes] = capacities
            return (
                outs
                if sized.silent == taped.silent
                else run_now(replace(sized, silent=False), executable, lanes, *args)
            )
        elif executable.options.max_tape is not None:
            raise _too_short(taped, counts)
        capacities = tuple(max(c, tape.rounded(n)) for n, c in zip(counts, capacities, strict=True))
        if executable.options.max_tape is not None:
            capacities = traced_capacities(taped)


def _too_short(taped: Taped, counts: Sequence[int]) -> UsageError:
    lanes = taped.run.lanes
    needed = -(-max(counts) // lanes)
    most = taped.tape.blocks[counts.index(max(counts))].code.block
    title = f"the tape of a gradient is full: max_tape={taped.executable.options.max_tape} records for each lane"
    note = f"a block of `{most.function}` was visited {max(counts):,} times by {lanes} lanes"
    help = f"set `max_tape={needed}`, or leave it out: outside `jit` the tape grows as needed"
    return UsageError(Diagnostic("PCB423", title, notes=(note,), helps=(help,)))


# The linear part


@dataclass(frozen=True, repr=False)
class Tangent:
    """Operands: the arguments of a run, the parts of its tape (if there is one), and the tangents of those arguments
    that are `moved`. Gives the tangents of the floating results."""

    run: Any
    moved: tuple[bool, ...]
    tape: Tape | None
    why: Exception | None = field(default=None, compare=False)  # there is no tape
    spoilt: bool = False  # is the tape that of another run?
    name: str = "tangents of run"

    def __repr__(self) -> str:
        return f"{self.name}[lanes={self.run.lanes}]"

    @property
    def _args(self) -> int:
        return len(self.moved)

    @property
    def _taped(self) -> Taped | None:
        return None if self.tape is None else Taped(self.run, self.tape)

    @property
    def _left(self) -> int:
        return 0 if self._taped is None else len(self._taped.keys)

    def traced(self, *args: Any) -> Sequence[Any]:
        count = self._args
        smooth = replace(self.run, smooth=True)
        return Pushed(smooth, self.moved).traced(*args[:count], *args[count + self._left :])

    def now(self, *args: Any) -> Sequence[Any]:
        return run_now(self, self.run.program.executable, self.run.lanes, *args)

    def types(self, avals: Sequence[Any]) -> Sequence[Any]:
        return [x.to_tangent_aval() for x in types_of(self.run, avals[: self._args]) if is_inexact(x)]

    def lifted(self, size: int, axes: Sequence[Axis]) -> Lifted:
        count, left = self._args, self._left
        if all(axis is None for axis in axes[: count + left]):
            return at_once(self, size, axes)
        forward = (*axes[:count], *axes[count + left :])
        found = lifted(lambda run: replace(self, run=run), self.run, self.moved, size, forward)
        if self.tape is not None:
            assert isinstance(found.operation, Tangent)
            head = axes[count + Taped(self.run, self.tape).keys.index(HEAD)]
            if head is None or found.operation.run.program != self.run.program:
                found = replace(found, operation=replace(found.operation, spoilt=True))

        def operand(k: int, x: Any, axis: Axis) -> Any:
            if count <= k < count + left:
                assert self.tape is not None
                return folded_part(Taped(self.run, self.tape).keys[k - count], x, axis, size)
            return found.operand(k if k < count else k - left, x, axis)

        return replace(found, operand=operand)

    def push(self, primals: Sequence[Any], tangents: Sequence[Any]) -> tuple[Sequence[Any], Sequence[Any]]:
        outs = bind(self, *primals)
        return outs, pushed(self, primals, tangents, outs)

    def pull(self, cotangents: Sequence[Any], args: Sequence[Any]) -> Sequence[Any]:
        count = self._args
        if any(x is None for x in args[: count + self._left]):
            raise refuse()
        if self.tape is None or self.spoilt:
            raise self.why or refuse()
        operation = Backward(self.run, self.moved, self.tape)
        given = operation.cotangents(cotangents)
        found = iter(bind(operation, *args[: count + self._left], *given))
        return [None] * (count + self._left) + [next(found) for _ in range(sum(self.moved))]


def folded_part(key: str, x: Any, axis: Axis, size: int) -> Any:
    """A part of a tape for `size` times as many lanes, which have run together."""
    return folded(x, axis, size) if key in (HEAD, STATUS) and axis is not None else x


@dataclass(frozen=True, repr=False)
class Backward:
    """Operands: the arguments of a run, the parts of its tape, and the cotangents of the floating leaves of its value.
    Gives those of the arguments that are `moved`."""

    run: Any
    moved: tuple[bool, ...]
    tape: Tape
    skips: bool = True  # do lanes whose cotangents are all zero stay out of it?
    stride: int = 1  # lanes of the run that was recorded, for each lane here
    name: str = "backward run"

    def __repr__(self) -> str:
        return f"{self.name}[lanes={self.run.lanes}]"

    @property
    def executable(self) -> PcExecutable:
        """What has run."""
        found: PcExecutable = self.run.program.executable
        return found

    @property
    def keys(self) -> tuple[str, ...]:
        """What the parts of the tape are called."""
        return Taped(self.run, self.tape).keys

    @property
    def results(self) -> tuple[str, ...]:
        """The variables of the floating leaves of the value."""
        program = self.executable.program
        return tuple(v for v in program.results if is_float(_type(program, v)))

    def cotangents(self, given: Sequence[Any]) -> list[Any]:
        """Of every floating leaf of the value; those of other results are of no use."""
        lanes, program = self.run.lanes, self.executable.program
        out = []
        for v, ct in zip(self.results, given, strict=False):
            type_ = storage_type(_type(program, v))
            out.append(jnp.zeros((lanes, *type_.shape), jnp.dtype(type_.dtype)) if ct is None else ct)
        return out

    def traced(self, *args: Any) -> Sequence[Any]:
        count, keys = len(self.moved), self.keys
        left = dict(zip(keys, args[count : count + len(keys)], strict=True))
        cotangents = dict[str, Any]()
        for v, given in zip(self.results, args[count + len(keys) :], strict=True):
            cotangents[v] = cotangents[v] + given if v in cotangents else given
        return undone(self, args[:count], left, cotangents)

    def now(self, *args: Any) -> Sequence[Any]:
        return run_now(self, self.executable, self.run.lanes, *args)

    def types(self, avals: Sequence[Any]) -> Sequence[Any]:
        return [x.to_tangent_aval() for x, here in zip(avals, self.moved, strict=False) if here]

    def within(self, size: int, axes: Sequence[Axis]) -> Backward:
        """The same for one of `size` elements, whose lanes were recorded together unless each has a tape of its own."""
        return self if self._apart(axes) else replace(self, stride=self.stride * size)

    def _apart(self, axes: Sequence[Axis]) -> bool:
        """Has each element a tape of its own?"""
        if not self.tape.blocks:
            return True
        return axes[len(self.moved) + self.keys.index(self.tape.blocks[0].key("link"))] is not None

    def lifted(self, size: int, axes: Sequence[Axis]) -> Lifted:
        count, keys = len(self.moved), self.keys
        if all(axis is None for axis in axes[: count + len(keys)]):
            return at_once(replace(self, skips=False), size, axes)
        if any(here and not mapped for here, mapped in zip(self.moved, self.run.mapped, strict=False)):
            return one_by_one(self, size, axes)  # elements share what has a cotangent for each of them
        if self._apart(axes):
            return one_by_one(self, size, axes)
        run = self.run.folded(size, axes[:count])

        def operand(k: int, x: Any, axis: Axis) -> Any:
            if k < count:
                return self.run.folded_operand(run, size, k, x, axis)
            return folded_part(keys[k - count], x, axis, size) if k < count + len(keys) else folded(x, axis, size)

        def results(outs: Sequence[Any]) -> tuple[list[Any], list[Axis]]:
            return unfolded_outs(outs, [True] * len(outs), size)

        return Lifted(replace(self, run=run), operand, results, results)

    def push(self, primals: Sequence[Any], tangents: Sequence[Any]) -> tuple[Sequence[Any], Sequence[Any]]:
        outs = bind(self, *primals)
        return outs, pushed(self, primals, tangents, outs)

    def pull(self, cotangents: Sequence[Any], args: Sequence[Any]) -> Sequence[Any]:
        raise refuse()


def _type(program: StackProgram, name: str) -> ArrayType:
    type_ = program.vars[name].type
    assert type_ is not None
    return type_


def undone(
    operation: Backward, args: Sequence[Any], left: Mapping[str, Any], cotangents: Mapping[str, Any]
) -> list[Any]:
    """The cotangents of arguments, from those of results."""
    run, plan = operation.run, operation.tape
    given: Dealt = run.given(*args)
    machine = operation.executable.smooth
    arguments = operation.executable.natural({**given.mapped, **given.common})
    shared, per_lane = machine.stored(arguments, run.lanes)
    layout = back.layout_of(machine.layout, plan)
    known = {**shared, **{reg(v): x for v, x in per_lane.items()}, **left}
    for block in plan.blocks:
        if (key := block.key("lane")) in known and operation.stride > 1:
            known[key] = known[key] // operation.stride
    status, head = left[STATUS], left[HEAD]
    alive = any_in_record(list(cotangents.values())) if cotangents else jnp.zeros(head.shape, bool)
    ok = status == int(Status.OK)
    capacities = [left[block.key("link")].shape[0] for block in plan.blocks]
    began = back.start(
        layout,
        {v: jnp.where(lane_mask(ok, x), x, jnp.zeros((), x.dtype)) for v, x in cotangents.items()},
        jnp.where(alive, head, -1) if operation.skips else head,
        left[ROOM].shape[0],
        capacities,
    )
    carry = backwards(operation.executable, layout, known, began)
    full = reduce(jnp.logical_or, [left[b.count] > n for b, n in zip(plan.blocks, capacities, strict=True)], False)
    wrong = (alive & ~ok) | full
    of_shared = _shared_cotangents(operation, arguments, {**deferred(plan, carry, known), **_owned(layout, carry)})
    out = []
    for k, v in enumerate(run.names):
        if not operation.moved[k]:
            continue
        x = args[k]
        if v in of_shared:
            ct = of_shared[v]
        elif back.ct(v) in carry:
            ct = layout.forward.rows(reg(v), carry[back.ct(v)])
            ct = ct if run.mapped[k] else ct.sum(0)
        else:
            ct = jnp.zeros_like(x)
        bad = wrong if run.mapped[k] else jnp.any(wrong)
        out.append(spoilt(lane_mask(bad, ct), ct).astype(x.dtype))
    return out


def backwards(executable: PcExecutable, layout: back.BackLayout, known: Values, carry: Values) -> Values:
    """Run the backward machine to its end."""
    machine, codes = executable.smooth, layout.codes
    modes = machine.modes(int(carry[back.RECORD].shape[0]))
    expensive = tuple(code.index for code in codes if code.tape.index in machine.expensive)
    stage: Any = back.BackStage(layout, known, machine.apart)
    shape: Any = layout
    blocks = Blocks(shape, Guard(), tuple(modes[code.tape.index] for code in codes), expensive, stage)
    policy = Drain() if expensive else Sweep()
    ended: Values = jax.lax.while_loop(blocks.live, lambda c: policy.trip(blocks, c), carry)
    return ended


def _owned(layout: back.BackLayout, carry: Values) -> dict[str, Any]:
    return {v: carry[back.own(v)].sum(0) for v in layout.owned}


def _shared_cotangents(operation: Backward, arguments: Mapping[str, Any], sums: Mapping[str, Any]) -> dict[str, Any]:
    """The cotangents of arguments that lanes share, from those of all shared variables."""
    program, machine = operation.executable.program, operation.executable.smooth
    flags = zip(operation.run.names, operation.run.mapped, operation.moved, strict=False)
    wanted = [v for v, mapped, here in flags if here and not mapped and program.vars[v].storage is Storage.SHARED]
    if not wanted:
        return {}

    def shared(*values: Any) -> dict[str, Any]:
        new = dict(zip(wanted, values, strict=True))
        found = machine.stored({**arguments, **new}, operation.run.lanes, sheltered)[0]
        return {v: found[v] for v in sums}

    pulled = jax.vjp(shared, *(arguments[v] for v in wanted))[1](dict(sums))
    return dict(zip(wanted, pulled, strict=True))


# From a run to its derivatives


def push(run: Any, primals: Sequence[Any], tangents: Sequence[Any]) -> tuple[Sequence[Any], list[Any]]:
    """The results of a run, and their tangents."""
    moved = tuple(t is not None for t in tangents)
    given = [t for t in tangents if t is not None]
    found, why = None, None
    if any(isinstance(t, jax.core.Tracer) for t in given):  # else nothing can ask for a transpose
        try:
            found = tape_of(run.program, wanted(run, moved))
        except Exception as error:  # it may be meant for forward mode
            why = error
    if found is None:
        outs = bind(run, *primals)
        kept: list[Any] = []
    else:
        taped = Taped(run, found)
        outs = bind(taped, *primals)
        outs, left = taped.split(outs)
        kept = list(left.values())
    linear = iter(bind(Tangent(run, moved, found, why), *primals, *kept, *given))
    return outs, [next(linear) if is_inexact(x) else None for x in outs]


def wanted(run: Any, moved: Sequence[bool]) -> frozenset[str]:
    """Shared variables that the cotangents of some arguments go through."""
    program = run.program.executable.program
    found = {v for v, mapped, here in zip(run.names, run.mapped, moved, strict=False) if here and not mapped}
    for op in program.prologue:
        if found & set(reads(op)):
            found |= set(writes(op))
    return frozenset(found)


@lru_cache(maxsize=256)
def tape_of(program: Any, shared: frozenset[str]) -> Tape:
    """The plan of a program's tape."""
    return tape.plan(program.executable.smooth.layout, shared)
