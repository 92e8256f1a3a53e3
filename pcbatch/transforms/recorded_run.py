"""A run that leaves its tape, as an operation of JAX."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from pcbatch.diagnostics.diagnostic import Diagnostic, Label
from pcbatch.errors import UsageError
from pcbatch.ir.stack import StackProgram
from pcbatch.lowering.typing.jax_types import is_symbolic, storage_type
from pcbatch.runtime.costs import xla_options
from pcbatch.runtime.costs.plan_modes import WIDEST
from pcbatch.runtime.emit.guard import Guard
from pcbatch.runtime.execute.executor import PcExecutable
from pcbatch.runtime.sharding.lane_sharding import LaneSharding
from pcbatch.runtime.vm.layout import Layout
from pcbatch.runtime.vm.machine import Machine, State
from pcbatch.runtime.vm.raw_result import replaying, unsought
from pcbatch.transforms.failure_callback import Notice
from pcbatch.transforms.primitive.batching import Axis, BatchedOperation, one_by_one
from pcbatch.transforms.primitive.jitted import jitted
from pcbatch.transforms.primitive.jvp import is_inexact, jvp_of, not_linear
from pcbatch.transforms.primitive.lane_folding import fold_lanes, unfolded_outs
from pcbatch.transforms.primitive.operation import Operation, bind
from pcbatch.transforms.tape import plan as tape
from pcbatch.transforms.tape.plan import HEAD, STATUS, RecordingContext, Tape, recording

ROOM = "tape:room"  # bool[depth]: how many nested calls there was room for, as a shape
ELEMENTS = "tape:elements"  # bool[elements]: how many elements of `vmap`s were recorded together, as a shape
FULL = "tape:full"  # bool[]: were there more records than room?
TRACED_VISITS = 256  # records of a block for each lane, on average, where the tape cannot grow
TRACED_BYTES = 2**27  # of such a tape


class RunOperation:
    """What operations that are made of a `Run` have in common."""

    run: Any
    name: str
    differentiates = False

    def __repr__(self) -> str:
        return f"{self.name}[lanes={self.run.lanes}]"

    @property
    def executable(self) -> PcExecutable:
        """What runs."""
        found: PcExecutable = self.run.program.executable
        return found

    @property
    def steps(self) -> StackProgram:
        return self.executable.program


@dataclass(frozen=True, repr=False)
class RecordedRun(RunOperation):
    """A run that leaves its tape: gives the leaves of the outcome and then the parts of the tape."""

    run: Any  # a `Run`
    tape: Tape
    room: tuple[tuple[int, ...], int] | None = None  # rows of each block's buffers, and depth; None: as fits
    silent: bool = False  # has another run printed what lanes have to say?
    name: str = "taped run"

    @property
    def keys(self) -> tuple[str, ...]:
        """What the parts of the tape are called, in order."""
        return (*self.tape.keys(), STATUS, FULL, ELEMENTS, ROOM)

    def lower(self, *args: Any) -> Sequence[Any]:
        rows, depth = self.room or (traced_rows(self), self.executable.traced_depth())
        executable, lanes, given = self.executable, self.run.lanes, self.run.given(*args)
        machine = recording_machine(executable, self.tape, rows, self.silent)
        arguments = executable.natural({**given.mapped, **given.common})
        state: State = machine.advance(machine.start(arguments, lanes, depth, given.end, given.names))
        outcome = executable.read(state, depth)
        left = {**{key: state.carry[key] for key in self.tape.keys()}, STATUS: outcome.status}
        over = [left[b.count] > n - lanes for b, n in zip(self.tape.blocks, rows, strict=True)]
        left[FULL] = jnp.any(jnp.array(over, bool))
        left |= {ELEMENTS: jnp.zeros((self.run.elements,), bool), ROOM: jnp.zeros((depth,), bool)}
        return [*jax.tree.leaves(outcome), *(left[key] for key in self.keys)]

    def impl(self, *args: Any) -> Sequence[Any]:
        if replaying():  # of what was inside `jit`: with the room that there was
            with unsought():
                outs = run_now(self, self.executable, self.run.lanes, *args)
            left = self.split(outs)[1]
            if np.any(left[STATUS]) or np.any(left[FULL]):
                return outs  # those who have called tell of it
        if self.room is not None:
            return run_now(self, self.executable, self.run.lanes, *args)
        return run_growing_tape(self, *args)

    def split(self, outs: Sequence[Any]) -> tuple[list[Any], dict[str, Any]]:
        """The leaves of the outcome, and the tape by key."""
        count = len(outs) - len(self.keys)
        return list(outs[:count]), dict(zip(self.keys, outs[count:], strict=True))

    def with_room(self, left: Mapping[str, Any]) -> RecordedRun:
        """The same, with the room that a run had."""
        rows = tuple(left[next(iter(b.buffers.values()))].shape[-2] for b in self.tape.blocks)
        return replace(self, room=(rows, int(left[ROOM].shape[-1])))

    def abstract_eval(self, avals: Sequence[Any]) -> None:
        """As traced."""

    def batch(self, size: int, axes: Sequence[Axis]) -> BatchedOperation:
        run = self.run.folded(size, axes)
        if run.program != self.run.program:  # another program has another tape
            return one_by_one(self, size, axes)
        outs = [*self.run.per_lane(), *(key in (HEAD, STATUS) for key in self.keys)]
        floats = [here for here, x in zip(outs, self.like(), strict=True) if is_inexact(x)]
        return BatchedOperation(
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
        dtypes = {block.key(n): dtype for block in self.tape.blocks for n, (_, dtype) in block.rows.buffers.items()}
        return [*leaves, *(np.empty((), dtypes.get(key, np.int32)) for key in self.keys)]

    def jvp(self, primals: Sequence[Any], tangents: Sequence[Any]) -> tuple[Sequence[Any], Sequence[Any]]:
        outs = bind(self, *primals)
        again = replace(self.with_room(self.split(outs)[1]), silent=True)
        return outs, jvp_of(again, primals, tangents, outs)

    def transpose(self, cotangents: Sequence[Any], args: Sequence[Any]) -> Sequence[Any]:
        raise not_linear()


def _stored(layout: Layout, name: str) -> Any:
    type_ = layout.program.vars[name].type
    assert type_ is not None
    return jnp.dtype(storage_type(type_).dtype)


def recording_machine(executable: PcExecutable, tape: Tape, rows: Sequence[int], silent: bool) -> Machine:
    """The machine that records."""
    smooth = executable.smooth
    codes = (smooth if silent else executable.machine).layout.codes
    return replace(
        smooth,
        layout=recording(replace(smooth.layout, codes=codes), tape, rows),
        emitter=Guard(),
        stage=RecordingContext,
    )


def traced_rows(taped: RecordedRun) -> tuple[int, ...]:
    """Rows of buffers where the tape cannot grow."""
    lanes, blocks = taped.run.lanes, taped.tape.blocks
    visits = taped.executable.options.max_tape
    if visits is None:
        each = max(1, sum(block.bytes() for block in blocks))
        many = WIDEST if is_symbolic(lanes) else lanes
        visits = max(16, min(TRACED_VISITS, TRACED_BYTES // (many * each)))
    return (lanes * (visits + 1),) * len(blocks)


def run_now(operation: Operation, executable: PcExecutable, lanes: int, *args: Any) -> list[Any]:
    """The result for arrays that are known, outside traces."""
    options = xla_options.compiler_options(
        executable.kernel, lanes, in_place=False
    )  # XLA gets a backward run wrong with it
    found: list[Any] = jitted(operation, None if options is None else tuple(options.items()))(*args)
    return found


def run_growing_tape(taped: RecordedRun, *args: Any) -> list[Any]:
    """A taped run with as much room as it needs, found by trying."""
    executable, lanes = taped.executable, taped.run.lanes
    limit, key = executable.options.max_tape, (taped.tape.shared, lanes)
    rows = (
        traced_rows(taped) if limit is not None else executable.tapes.get(key, (17 * lanes,) * len(taped.tape.blocks))
    )
    depth = executable.depth
    while True:
        sized = replace(taped, room=(rows, depth), silent=taped.silent or executable.prints)
        outs = run_now(sized, executable, lanes, *args)
        left = taped.split(outs)[1]
        counts = [int(left[block.count]) for block in taped.tape.blocks]
        deeper = executable.deeper(left[STATUS], depth, LaneSharding(None, lanes))
        full = bool(left[FULL])
        if deeper is None and not full:
            executable.remember(depth)
            executable.tapes[key] = rows
            if sized.silent == taped.silent:
                return outs
            return run_now(replace(sized, silent=False), executable, lanes, *args)
        if full and limit is not None:
            raise _too_short(taped, counts)
        depth = deeper or depth
        rows = tuple(max(old, tape.rounded(n) + lanes) for n, old in zip(counts, rows, strict=True)) if full else rows


def _too_short(taped: RecordedRun, counts: Sequence[int]) -> UsageError:
    lanes = taped.run.lanes
    needed = -(-max(counts) // lanes)
    most = taped.tape.blocks[counts.index(max(counts))].code.block
    title = f"the tape of a gradient is full: max_tape={taped.executable.options.max_tape} records for each lane"
    note = f"a block of `{most.function}` was visited {max(counts):,} times by {lanes} lanes"
    help = f"set `max_tape={needed}`, or leave it out: outside `jit` the tape grows as needed"
    return UsageError(Diagnostic("PCB423", title, notes=(note,), helps=(help,)))


@lru_cache(maxsize=256)
def tape_notice(executable: PcExecutable, tape: Tape) -> Notice:
    """What there is to say inside `jit`, of a full tape of a program."""

    def findings(full: Any, status: Any, *counts: Any) -> list[Diagnostic]:
        # Elements of a `vmap` that were recorded one by one have counts of their own.
        each = status.size // max(1, counts[0].size)
        needed = -(-max(int(count.max()) for count in counts) // each)
        most = tape.blocks[max(range(len(counts)), key=lambda k: int(counts[k].max()))].code.block
        place = next((loc for op in most.ops if (loc := getattr(op, "loc", None)) is not None), None)
        title = f"the tape of a gradient inside `jit` is full: it needs {needed} records for each lane"
        note = "gradients of this run are NaN; values are right all the same"
        primary = None if place is None else Label(place, "a block that was visited most often begins here")
        help = f"set `max_tape={needed}`, as `f.tape(...)` says for other arguments; or use `checkpoints=`"
        return [Diagnostic("PCB423", title, primary, notes=(note,), helps=(help,))]

    return Notice(findings)


def folded_part(key: str, x: Any, axis: Axis, size: int) -> Any:
    """A part of a tape for `size` times as many lanes, which have run together."""
    return fold_lanes(x, axis, size) if key in (HEAD, STATUS) and axis is not None else x
