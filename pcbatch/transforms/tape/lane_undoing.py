"""The undoing of lanes one after the other: each is run again and recorded right before it is undone, in native code.

Lanes that run one after the other need the tape of one of them at a time. It stays in the cache, its size does not
depend on the number of lanes, and inside `jit` nobody has to say how long it may be: a lane that visits more blocks
than its tape has rows is run once more for each segment, as `remat_run.py` does for lanes together. Cotangents of
values that lanes share are added in place in each visit.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import jax
import jax.numpy as jnp

from pcbatch.ir.stack import Storage
from pcbatch.lowering.analysis.block_frequency import cycles
from pcbatch.runtime.scalar.loop_nest import loop_nest
from pcbatch.runtime.scalar.native import in_one_function
from pcbatch.runtime.scalar.steps import Steps
from pcbatch.runtime.scalar.words import row_of, with_row
from pcbatch.runtime.vm.block_body import Values
from pcbatch.runtime.vm.layout import PER_BLOCK, Layout, initial, reg
from pcbatch.transforms.tape import backward_machine
from pcbatch.transforms.tape.backward_machine import BackwardContext, BackwardLayout, ct
from pcbatch.transforms.tape.record_layout import struct_of
from pcbatch.transforms.tape.recorder import RecordingContext, RecordingLayout, recording_layout
from pcbatch.transforms.tape.tape_plan import HEAD, Tape
from pcbatch.transforms.tape.uniform_cotangents import total

TAPE_BYTES = 1 << 18  # of the tape of a lane: a part of the cache of a core
LEAST_ROWS, MOST_ROWS = 32, 4096
MANY = 1 << 30  # segments: more than any lane has
OK = "ok"  # of each lane, bool[lanes]: whether it has run to its end again


@dataclass(frozen=True, eq=False)
class LaneUndoing:
    """The forward steps that record a lane, and the backward steps that undo it.

    Attributes:
        layout: The arrays of the machine that records.
        backward: Those of the backward machine.
        rows: The visits of a segment, all of which the tape of a lane holds.
    """

    layout: RecordingLayout
    backward: BackwardLayout
    rows: int

    @classmethod
    def of(cls, layout: Layout, tape: Tape) -> LaneUndoing:
        """Return the steps for a machine of lanes that saves floating numbers as such, and the plan of its tape."""
        around = cycles(layout.program)
        again = [around[block.source.label] > 0 for block in tape.blocks]
        size = sum(block.bytes() for block, often in zip(tape.blocks, again, strict=True) if often)
        rows = max(LEAST_ROWS, min(MOST_ROWS, TAPE_BYTES // max(1, size)))
        sizes = [rows + 1 if often else 2 for often in again]
        return cls(recording_layout(layout, tape, sizes), backward_machine.layout_of(layout, tape), rows)

    @property
    def buffers(self) -> tuple[str, ...]:
        """The state keys of records."""
        return tuple(key for block in self.layout.tape.blocks for key in block.buffers.values())

    @cached_property
    def recording(self) -> Steps:
        """The steps that run and record a lane."""
        layout = self.layout
        counts = {block.count for block in layout.tape.blocks}
        return Steps(
            [code for code in layout.codes if code.awaited],
            loop_nest(layout.program),
            lambda known: RecordingContext(layout, known),
            frozenset({*layout.buffers, *counts, *self.buffers, *PER_BLOCK}),
            self._shared,
            layout.lanes_last,
        )

    @cached_property
    def undoing(self) -> Steps:
        """The steps that undo a lane."""
        layout = self.backward
        frames = () if layout.frames is None else map(ct, layout.frames.widths)
        totals = {total(v) for block in layout.tape.blocks for v in block.deferred}
        empty = jax.eval_shape(lambda: self.layout.tape.empty(1, self.layout.tape_rows))
        types = {v: t for v in layout.forward.registers if (t := layout.forward.program.vars[v].type) is not None}
        own = {reg(v): struct_of(types[v], ()) for v in layout.forward.program.params if v in types}
        return Steps(
            layout.codes,
            tuple(range(len(layout.codes))),
            lambda known: BackwardContext(layout, known, defers=False),
            frozenset({*frames, *totals}),
            self._shared | {key: empty[key] for key in self.buffers} | own,
            frozenset(ct(v) for v in layout.floats if layout.lanes_last(v)),
            frozenset(own),
        )

    @cached_property
    def _shared(self) -> dict[str, Any]:
        """The types of the values that lanes share."""
        found = self.layout.program.vars.items()
        return {v: struct_of(var.type, ()) for v, var in found if var.storage is Storage.SHARED and var.type}

    def first(self, depth: int) -> Values:
        """Return the state of a lane before its first visit, with room for so many nested calls."""
        state = initial(self.layout, 1, depth, {})
        return {key: self.recording.without_lanes(key, value) for key, value in state.items()}

    def undone(self, depth: int, shared: Values) -> Values:
        """Return the state of the backward machine for a lane without records and cotangents; `shared` are the values
        that lanes share."""
        state = backward_machine.start(self.backward, {}, depth, 1, shared, defers=False)
        return {key: self.undoing.without_lanes(key, value) for key, value in state.items()}

    def is_native(self, depth: int) -> bool:
        """Return whether a native function holds all steps."""
        first = jax.eval_shape(lambda: self.first(depth))
        undone = jax.eval_shape(lambda shared: self.undone(depth, shared), self._shared)
        return not self.recording.left(first) and not self.undoing.left(undone)

    @property
    def cotangents_of_arguments(self) -> list[str]:
        """The state keys of the cotangents of arguments that are a lane's."""
        return [ct(v) for v in self.layout.program.params if v in self.backward.floats]

    def start(self, first: Values) -> Values:
        """Return the parts of `first` that each lane, and the tape of each segment, begins with."""
        kept = {key: first[key] for key in ("pc", "depth", "steps") if key in first}
        return kept | self._no_records()

    def _no_records(self) -> Values:
        return {HEAD: jnp.int32(-1)} | {block.count: jnp.int32(0) for block in self.layout.tape.blocks}

    def undo(
        self, lane: Values, begin: Values, after: Values, shared: Values, mine: Values, some: jax.Array
    ) -> tuple[Values, Values, jax.Array]:
        """Undo a lane, the last segment first; each is run from the beginning again.

        Args:
            lane: The state of a lane, of which the lane begins with all but `begin`.
            begin: See there.
            after: The state of the backward machine, but for where the lane is.
            shared: The values that lanes share.
            mine: The arguments of the lane.
            some: Any value that XLA does not know.

        Returns:
            The state of the lane, that of the backward machine, and whether the lane has run to its end.
        """

        def undo_last(c: tuple[jax.Array, Values, Values, jax.Array]) -> Any:
            segments, lane, after, ok = c
            done, lane = self._again(lane | begin, shared, segments, some)
            ok = jnp.where(segments == MANY, lane["pc"] == self.layout.exit, ok)
            known = shared | mine | {key: lane[key] for key in self.buffers}
            there = backward_machine.at_records(self.backward, {}, lane[HEAD])
            undone = self.undoing.run(after | there, known, some)
            return done - 1, lane, {key: undone[key] for key in after}, ok

        begun = jnp.int32(MANY), lane, after, jnp.ones((), bool)
        _, lane, after, ok = jax.lax.while_loop(lambda c: c[0] > 0, undo_last, begun)
        return lane, after, ok

    def _again(self, lane: Values, shared: Values, segments: jax.Array, some: jax.Array) -> tuple[jax.Array, Values]:
        """Run so many segments at most, of which the last one stays on the tape; return how many there were."""

        def more(c: tuple[jax.Array, Values]) -> jax.Array:
            runs: jax.Array = c[1]["pc"] < self.layout.exit
            return (c[0] < segments) & runs

        def segment(c: tuple[jax.Array, Values]) -> tuple[jax.Array, Values]:
            return c[0] + 1, self.recording.run(c[1] | self._no_records(), shared, some, jnp.int32(self.rows))

        out: tuple[jax.Array, Values] = jax.lax.while_loop(more, segment, (jnp.int32(0), lane))
        return out


@dataclass(frozen=True, eq=False)
class RerunTape(Tape):
    """The plan of a tape that no run leaves: each lane fills it when it is run again."""

    undoing: LaneUndoing | None = None


def undo_lanes(
    undoing: LaneUndoing, depth: int, shared: Values, per_lane: Values, entering: Values, going: jax.Array
) -> Values:
    """Run each lane again, and undo it.

    Args:
        undoing: The steps.
        depth: The nested calls that frames have room for.
        shared: The values that lanes share, by variable.
        per_lane: The arguments of each lane, [lanes, ...], by state key.
        entering: The cotangents of results, [lanes, ...], by state key.
        going: bool[lanes]: the lanes that are undone.

    Returns:
        The cotangents of arguments, [lanes, ...], sums of those of shared values as a backward machine of one lane has
        them, and OK.
    """
    sums = undoing.undone(depth, shared)
    registers = {key: sums.pop(key) for key in map(ct, undoing.backward.floats)}
    sums = {key: value for key, value in sums.items() if key not in backward_machine.PLACE}

    # No array from outside stands in it, so that each is an operand of the native function.
    def run(operands: tuple[Any, ...], some: jax.Array) -> tuple[Values, Values, jax.Array]:
        entering, per_lane, going, first, sums, registers, shared = operands
        start = undoing.start(first)
        moved = {key: registers[key] for key in undoing.cotangents_of_arguments}
        outs = {key: jnp.zeros((*going.shape, *x.shape), x.dtype) for key, x in moved.items()}

        def undo_lane(number: jax.Array, c: tuple[Values, Values, Values, jax.Array]) -> Any:
            lane, sums, outs, ok = c
            arguments = {key: row_of(array, number) for key, array in per_lane.items()}
            pc = jnp.where(going[number], start["pc"], jnp.asarray(undoing.layout.exit, start["pc"].dtype))
            after = sums | registers | {key: row_of(array, number) for key, array in entering.items()}
            lane, after, lane_ok = undoing.undo(lane, start | arguments | {"pc": pc}, after, shared, arguments, some)
            new = {key: with_row(array, after[key], number) for key, array in outs.items()}
            return lane, {key: after[key] for key in sums}, new, ok.at[number].set(lane_ok)

        c = first, sums, outs, jnp.zeros(going.shape, bool)
        _, sums, outs, ok = jax.lax.fori_loop(0, some, undo_lane, c)
        return sums, outs, ok

    operands = entering, per_lane, going, undoing.first(depth), sums, registers, shared
    out: tuple[Values, Values, jax.Array] = in_one_function(run)(operands, jnp.int32(going.shape[0]))
    sums, of_lanes, ok = out
    return {key: undoing.undoing.with_lanes(key, value) for key, value in sums.items()} | of_lanes | {OK: ok}
