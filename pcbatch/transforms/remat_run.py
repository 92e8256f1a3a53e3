"""A run that keeps snapshots instead of a tape: states of the machine, between which it is run again.

The memory of a gradient is then that of a fixed number of states and of the tape of one segment, however long the run.
A run is cut into segments of `SEGMENT` trips. Every `stride`-th segment begins with a snapshot; when there is no room
for another one, every second is dropped and the stride doubles.

```
room for 4   S . S . S . S .        stride 2, eight segments: full
             S . . . S . . .        stride 4; the next snapshot is that of segment 8
```
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import jax
import jax.numpy as jnp
import numpy as np

from pcbatch.plan import Dense
from pcbatch.runtime.emit.guard import Guard
from pcbatch.runtime.execute.executor import PcExecutable
from pcbatch.runtime.sharding.lane_sharding import LaneSharding
from pcbatch.runtime.vm.block_body import Values
from pcbatch.runtime.vm.machine import Machine, State
from pcbatch.runtime.vm.policies import Sweep
from pcbatch.runtime.vm.raw_result import replaying, unsought
from pcbatch.transforms.primitive.derived import one_by_one
from pcbatch.transforms.primitive.operation import Axis, BatchedOperation
from pcbatch.transforms.recorded_run import FULL, ROOM, RecordedRun, Room, TapingRun, recorder_of, run_compiled
from pcbatch.transforms.tape.recorder import RecordingContext, recording_layout
from pcbatch.transforms.tape.tape_plan import STATUS, Tape

if TYPE_CHECKING:
    from pcbatch.transforms.run import Run

SEGMENT = 64  # trips
SNAPSHOT = "snapshot:"  # before the state keys of snapshots
STRIDE = "stride"  # int32[]: segments between two snapshots
SEGMENTS = "segments"  # int32[]: how many the run had


@recorder_of.register(Tape)
def recorder_of_lanes(tape: Tape, run: Run) -> RecordedRun | RematRun:
    """The run of lanes together that leaves a tape, or snapshots if the function has `checkpoints`."""
    snapshots = run.program.executable.options.checkpoints
    # An even number, so that every second can be dropped.
    return RecordedRun(run, tape) if snapshots is None else RematRun(run, tape, snapshots + snapshots % 2)


def segment_rows(tape: Tape, lanes: int) -> tuple[int, ...]:
    """Rows of the tape of a segment: a trip visits each block at most once."""
    return ((SEGMENT + 1) * lanes,) * len(tape.blocks)


def segment_machine(executable: PcExecutable, tape: Tape | None = None, lanes: int = 0) -> Machine:
    """The machine of a segment, whose trips visit each block once; it records if it is given a tape."""
    smooth = executable.smooth
    each_once = replace(smooth, emitter=Guard(), schedule=Sweep(), modes=_dense(len(smooth.layout.codes)))
    if tape is None:
        return each_once
    layout = recording_layout(smooth.layout, tape, segment_rows(tape, lanes))
    return replace(each_once, layout=layout, stage=RecordingContext)


def _dense(blocks: int) -> Any:
    return lambda lanes: (Dense(),) * blocks


@dataclass(frozen=True, repr=False)
class RematRun(TapingRun):
    """A run that keeps snapshots, which are its tape."""

    run: Run
    tape: Tape
    snapshots: int
    depth: int | None = None  # room for nested calls; None: it may grow
    name: str = "marked run"

    @property
    def keys(self) -> tuple[str, ...]:
        machine = segment_machine(self.executable)
        state = jax.eval_shape(lambda: machine.idle({}, self.run.lanes, 1).carry)
        return (*(SNAPSHOT + key for key in sorted(state)), STRIDE, SEGMENTS, STATUS, FULL, ROOM)

    def lower(self, *args: Any) -> Sequence[Any]:
        executable, lanes, sharded = self.executable, self.run.lanes, self.run.arguments(*args)
        depth = self.depth or executable.stacks.traced()
        machine = segment_machine(executable)
        arguments = executable.arguments.natural({**sharded.mapped, **sharded.common})
        start = machine.start(arguments, lanes, depth, sharded.end, sharded.names)
        state, parts = run_with_snapshots(machine, start, self.snapshots)
        raw = executable.results.of_state(state, depth)
        parts |= {STATUS: raw.status, FULL: jnp.zeros((), bool), ROOM: jnp.zeros((depth,), bool)}
        return [*jax.tree.leaves(raw), *(parts[key] for key in self.keys)]

    def impl(self, *args: Any) -> Sequence[Any]:
        executable, lanes = self.executable, self.run.lanes
        if replaying():  # JAX repeats what was inside `jit` to find a NaN: with the depth that there was
            with unsought():
                outs = run_compiled(self, executable, lanes, *args)
            if np.any(self.split(outs)[1][STATUS]):
                return outs
        depth = self.depth or executable.depth
        while True:
            outs = run_compiled(replace(self, depth=depth), executable, lanes, *args)
            status = self.split(outs)[1][STATUS]
            deeper = None if self.depth is not None else executable.deeper(status, depth, LaneSharding(None, lanes))
            if deeper is None:
                executable.stacks.remember(depth)
                return outs
            depth = deeper

    def room_of(self, parts: Mapping[str, Any]) -> Room:
        """The room that the snapshots `parts` have."""
        return Room((), int(parts[ROOM].shape[-1]))

    def again(self, room: Room) -> RematRun:
        """The run with the depth of this room."""
        return replace(self, depth=room.depth)

    def batch(self, size: int, axes: Sequence[Axis]) -> BatchedOperation:
        return one_by_one(self, size, axes)


def run_with_snapshots(machine: Machine, state: State, snapshots: int) -> tuple[State, dict[str, Any]]:
    """Run to the end; returns the last state, and at most `snapshots` snapshots with `STRIDE` and `SEGMENTS`."""
    blocks = machine.blocks(state)
    room = {key: jnp.zeros((snapshots, *x.shape), x.dtype) for key, x in state.carry.items()}

    def segment(c: tuple[Values, Values, jax.Array, jax.Array, jax.Array]) -> Any:
        carry, saved, stride, count, trips = c
        # Row r has segment r * stride; with every second row dropped, the rest are in the front half.
        full = count >= snapshots * stride
        saved = _run_once(full, lambda s: {key: x.at[: snapshots // 2].set(x[::2]) for key, x in s.items()}, saved)
        stride = jnp.where(full, 2 * stride, stride)
        row = count // stride

        def save(s: Values) -> Values:
            return {key: x.at[row].set(carry[key]) for key, x in s.items()}

        saved = _run_once(count % stride == 0, save, saved)
        after = machine.advance(State(carry, state.shared, trips), SEGMENT)
        return after.carry, saved, stride, count + 1, after.trips

    one, none = jnp.ones((), jnp.int32), jnp.zeros((), jnp.int32)
    begin = (state.carry, room, one, none, state.trips)
    carry, saved, stride, count, trips = jax.lax.while_loop(lambda c: blocks.live(c[0]), segment, begin)
    parts = {SNAPSHOT + key: x for key, x in saved.items()} | {STRIDE: stride, SEGMENTS: count}
    return State(carry, state.shared, trips), parts


def _run_once(condition: jax.Array, change: Callable[[Values], Values], values: Values) -> Values:
    """`change(values)` if the condition holds, else `values`, in a loop: a conditional would copy them."""

    def body(c: tuple[jax.Array, Values]) -> tuple[jax.Array, Values]:
        return jnp.zeros((), bool), change(c[1])

    after: Values = jax.lax.while_loop(lambda c: c[0], body, (condition, values))[1]
    return after
