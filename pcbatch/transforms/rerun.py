"""A run that leaves no tape: each lane is run again and recorded right before it is undone, all in native code.

Lanes that run one after the other need the tape of one of them at a time. It stays in the cache, its size does not
depend on the number of lanes, and inside `jit` nobody has to say how long it may be: a lane that visits more blocks
than its tape has rows is run once more for each segment, as `remat_run.py` does for lanes together.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import jax
import jax.numpy as jnp

from pcbatch.lowering.analysis.block_frequency import cycles
from pcbatch.lowering.typing.jax_types import is_symbolic
from pcbatch.runtime.lowering_platform import lowering_platform
from pcbatch.runtime.scalar.loop_nest import loop_nest
from pcbatch.runtime.scalar.native import in_one_function
from pcbatch.runtime.scalar.steps import Steps, one_lane, with_lane
from pcbatch.runtime.vm.block_body import Values
from pcbatch.runtime.vm.layout import PER_BLOCK, initial
from pcbatch.runtime.vm.raw_result import debug_checks
from pcbatch.transforms.recorded_run import ELEMENTS, ROOM, RecordedRun, Room, TapingRun, traced_rows
from pcbatch.transforms.tape import backward_machine
from pcbatch.transforms.tape.backward_machine import BackwardContext, BackwardLayout, ct
from pcbatch.transforms.tape.plan import HEAD, STATUS, Tape
from pcbatch.transforms.tape.recorder import RecordingContext, RecordingLayout, recording_layout
from pcbatch.transforms.tape.uniform_cotangents import total

if TYPE_CHECKING:
    from pcbatch.transforms.run import Run

TAPE_BYTES = 1 << 18  # of the tape of a lane: a part of the cache of a core
LEAST_ROWS, MOST_ROWS = 32, 4096
MANY = 1 << 30  # segments: more than any lane has
OK = "ok"  # of each lane, bool[lanes]: whether it has run again to its end


class RerunTape(Tape):
    """The plan of a tape that no run leaves: each lane fills it when it is run again."""


@dataclass(frozen=True, repr=False)
class RerunRun(TapingRun):
    """A run whose lanes are run again when they are undone."""

    run: Run
    tape: RerunTape
    name: str = "run to be run again"

    @property
    def keys(self) -> tuple[str, ...]:
        return (STATUS, ELEMENTS, ROOM)

    def lower(self, *args: Any) -> Sequence[Any]:
        return self._with_parts(self.run.lower(*args))

    def impl(self, *args: Any) -> Sequence[Any]:
        return self._with_parts(self.run.impl(*args))

    def _with_parts(self, leaves: Sequence[Any]) -> Sequence[Any]:
        raw = jax.tree.unflatten(self.run.structure(), leaves)
        depth = self.executable.stacks.traced()
        return [*leaves, raw.status, jnp.zeros((self.run.elements,), bool), jnp.zeros((depth,), bool)]


def by_reruns(run: Run) -> bool:
    """Whether the gradient of a run is that of lanes that are run again one after the other."""
    executable = run.program.executable
    if executable.options.max_tape is not None or executable.options.checkpoints is not None or debug_checks():
        return False
    if run.through is not None or run.ends or not is_native(run):
        return False
    return executable.is_alone(run.lanes)


def recorded(run: Run, tape: Tape, args: Sequence[Any]) -> dict[str, Any]:
    """Return the parts of the tape of a run of lanes together, for platforms where no lane runs alone."""
    recorder = RecordedRun(run, Tape(tape.blocks, tape.shared), silent=True)
    room = Room(traced_rows(recorder), recorder.executable.stacks.traced())
    return recorder.split(recorder.again(room).lower(*args))[1]


def is_native(run: Run) -> bool:
    """Whether lanes are run again one after the other where a backward run is lowered."""
    return lowering_platform() == "cpu" and not is_symbolic(run.lanes)


@dataclass(frozen=True)
class LaneUndoing:
    """The forward steps that record a lane, and the backward steps that undo it."""

    forward: RecordingLayout
    backward: BackwardLayout
    rows: int  # of the tape: the visits of a segment

    @classmethod
    def of(cls, run: Run, backward: BackwardLayout) -> LaneUndoing:
        """Return those of the lanes of a run."""
        tape, around = backward.tape, cycles(run.steps)
        again = [around[block.code.block.label] > 0 for block in tape.blocks]
        size = sum(block.bytes() for block, often in zip(tape.blocks, again, strict=True) if often)
        rows = max(LEAST_ROWS, min(MOST_ROWS, TAPE_BYTES // max(1, size)))
        sizes = [rows + 1 if often else 2 for often in again]
        return cls(recording_layout(backward.forward, tape, sizes), backward, rows)

    @property
    def recording(self) -> Steps:
        """The steps that run and record a lane."""
        layout = self.forward
        buffers = {key for block in layout.tape.blocks for key in (block.count, *block.buffers.values())}
        return Steps(
            [code for code in layout.codes if code.awaited],
            loop_nest(layout.program),
            lambda known: RecordingContext(layout, known),
            frozenset({*layout.buffers, *buffers, *PER_BLOCK}),
            layout.lanes_last,
        )

    def backward_steps(self, own: frozenset[str], context: BackwardContext) -> Steps:
        """The steps that undo a lane; `own` are the keys of its arguments."""
        layout = self.backward
        frames = () if layout.frames is None else map(ct, layout.frames.widths)
        totals = {total(v) for block in layout.tape.blocks for v in block.deferred}
        last = {ct(v) for v in layout.floats if layout.lanes_last(v)}
        return Steps(
            layout.codes,
            tuple(range(len(layout.codes))),
            lambda known: replace(context, known=known),
            frozenset({*frames, *totals}),
            frozenset(last),
            own,
        )


def undo_lanes(
    undoing: LaneUndoing,
    context: BackwardContext,
    shared: Values,
    per_lane: Values,
    entering: Values,
    start: Values,
    going: jax.Array,
    depth: int,
) -> Values:
    """Run each lane again, and undo it.

    Args:
        undoing: The steps.
        context: The context of the backward steps.
        shared: The values that lanes share, by variable.
        per_lane: The arguments of each lane, by state key.
        entering: The cotangents of results, by state key.
        start: The state of the backward machine before the first record, with room for the frames of one lane.
        going: bool[lanes]: the lanes that are undone.
        depth: The nested calls that frames have room for.

    Returns:
        The cotangents of arguments, sums of those of shared values, and OK.
    """
    layout, tape = undoing.forward, undoing.forward.tape
    lanes, exit_ = going.shape[0], layout.exit
    recording, backward = undoing.recording, undoing.backward_steps(frozenset(per_lane), context)
    empty = {HEAD: jnp.int32(-1)} | {block.count: jnp.int32(0) for block in tape.blocks}
    buffers = [key for block in tape.blocks for key in block.buffers.values()]
    first = {key: recording.without_lanes(key, value) for key, value in initial(layout, 1, depth, {}).items()}
    sums = {key: backward.without_lanes(key, value) for key, value in start.items()}
    registers = {key: sums.pop(key) for key in map(ct, undoing.backward.floats)}
    params = [key for v in layout.program.params if (key := ct(v)) in registers]
    outs = {key: jnp.zeros((lanes, *registers[key].shape), registers[key].dtype) for key in params}

    def run(
        entering: Values,
        per_lane: Values,
        going: jax.Array,
        first: Values,
        sums: Values,
        shared: Values,
        some: jax.Array,
    ) -> tuple[Values, Values, jax.Array]:
        fresh = {key: first[key] for key in ("pc", "depth", "steps") if key in first} | empty

        def one(number: jax.Array, c: Any) -> Any:
            lane, sums, outs, ok = c
            mine = one_lane(per_lane, number)
            pc = jnp.where(going[number], fresh["pc"], jnp.asarray(exit_, fresh["pc"].dtype))
            begin = fresh | mine | {"pc": pc}
            cotangents = {key: jnp.zeros_like(x) for key, x in registers.items()} | one_lane(entering, number)

            def again(lane: Values, segments: jax.Array) -> tuple[jax.Array, Values]:
                """Run so many segments, of which the last one stays on the tape."""

                def more(c: tuple[jax.Array, Values]) -> jax.Array:
                    return (c[0] < segments) & (c[1]["pc"] < exit_)

                def segment(c: tuple[jax.Array, Values]) -> tuple[jax.Array, Values]:
                    return c[0] + 1, recording.run(c[1] | empty, shared, some, jnp.int32(undoing.rows))

                out: tuple[jax.Array, Values] = jax.lax.while_loop(more, segment, (jnp.int32(0), lane | begin))
                return out

            def undo(c: Any) -> Any:
                segments, lane, after, ok = c
                done, lane = again(lane, segments)
                ok = jnp.where(segments == MANY, lane["pc"] == exit_, ok)
                known = shared | mine | {key: lane[key] for key in buffers}
                head = backward_machine.at_records(undoing.backward, {}, lane[HEAD])
                after = backward.run(after | head, known, some)
                return done - 1, lane, {key: after[key] for key in c[2]}, ok

            begun = jnp.int32(MANY), lane, sums | cotangents, jnp.ones((), bool)
            _, lane, after, lane_ok = jax.lax.while_loop(lambda c: c[0] > 0, undo, begun)
            new = {key: after[key] for key in outs}
            return lane, {key: after[key] for key in sums}, with_lane(outs, new, number), ok.at[number].set(lane_ok)

        c = first, sums, outs, jnp.zeros(going.shape, bool)
        _, sums, out, ok = jax.lax.fori_loop(0, some, one, c)
        return sums, out, ok

    sums, out, ok = in_one_function(run)(entering, per_lane, going, first, sums, shared, jnp.int32(lanes))
    return {key: backward.with_lanes(key, value) for key, value in sums.items()} | out | {OK: ok}
