"""A run that leaves marks instead of a tape: whole states of the machine, between which it is run again.

The memory of a gradient is then that of a fixed number of states and of the tape of one segment, however long the run.
A run is cut into segments of so many trips. Every `stride`-th segment begins with a mark; when all marks are used,
every second one is dropped and the stride doubles.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from pcbatch.options import Dense
from pcbatch.runtime.emit.guard import Guard
from pcbatch.runtime.execute.executor import PcExecutable
from pcbatch.runtime.sharding.lane_sharding import LaneSharding
from pcbatch.runtime.vm.block_body import Values
from pcbatch.runtime.vm.machine import Machine, State
from pcbatch.runtime.vm.policies import Sweep
from pcbatch.runtime.vm.raw_result import replaying, unsought
from pcbatch.transforms.primitive.batching import Axis, BatchedOperation, one_by_one
from pcbatch.transforms.primitive.jvp import jvp_of, not_linear
from pcbatch.transforms.primitive.operation import bind
from pcbatch.transforms.recorded_run import FULL, ROOM, RecordedRun, RunOperation, run_now
from pcbatch.transforms.tape.plan import STATUS, RecordingContext, Tape, recording

SEGMENT = 64  # trips
SNAPSHOT = "mark:"  # state keys of saved states
STRIDE = "stride"  # int32[]: segments between two marks
SEGMENTS = "segments"  # int32[]


def recorder_of(run: Any, tape: Tape) -> RecordedRun | RematRun:
    """A run that leaves what its gradient needs: a tape, or marks if the function has `checkpoints`."""
    marks = run.program.executable.options.checkpoints
    return RecordedRun(run, tape) if marks is None else RematRun(run, tape, marks + marks % 2)


def segment_rows(tape: Tape, lanes: int) -> tuple[int, ...]:
    """Rows of the tape of a segment: a trip visits each block at most once."""
    return ((SEGMENT + 1) * lanes,) * len(tape.blocks)


def segment_machine(executable: PcExecutable, tape: Tape | None = None, lanes: int = 0) -> Machine:
    """A machine of which a trip visits each block once; it records, if it is given a tape."""
    smooth = executable.smooth
    each_once = replace(smooth, emitter=Guard(), schedule=Sweep(), modes=_dense(len(smooth.layout.codes)))
    if tape is None:
        return each_once
    layout = recording(smooth.layout, tape, segment_rows(tape, lanes))
    return replace(each_once, layout=layout, stage=RecordingContext)


def _dense(blocks: int) -> Any:
    return lambda lanes: (Dense(),) * blocks


@dataclass(frozen=True, repr=False)
class RematRun(RunOperation):
    """A run that leaves marks: gives the leaves of the outcome, and then the marks (see `keys`)."""

    run: Any  # a `Run`
    tape: Tape
    marks: int
    depth: int | None = None  # room for nested calls; None: as fits
    name: str = "marked run"

    @property
    def keys(self) -> tuple[str, ...]:
        """What the parts are called, in order."""
        machine = segment_machine(self.executable)
        state = jax.eval_shape(lambda: machine.idle({}, self.run.lanes, 1).carry)
        return (*(SNAPSHOT + key for key in sorted(state)), STRIDE, SEGMENTS, STATUS, FULL, ROOM)

    def lower(self, *args: Any) -> Sequence[Any]:
        executable, lanes, given = self.executable, self.run.lanes, self.run.given(*args)
        depth = self.depth or executable.traced_depth()
        machine = segment_machine(executable)
        arguments = executable.natural({**given.mapped, **given.common})
        state, left = run_with_snapshots(
            machine, machine.start(arguments, lanes, depth, given.end, given.names), self.marks
        )
        outcome = executable.read(state, depth)
        left |= {STATUS: outcome.status, FULL: jnp.zeros((), bool), ROOM: jnp.zeros((depth,), bool)}
        return [*jax.tree.leaves(outcome), *(left[key] for key in self.keys)]

    def impl(self, *args: Any) -> Sequence[Any]:
        executable, lanes = self.executable, self.run.lanes
        if replaying():  # of what was inside `jit`: with the depth that there was
            with unsought():
                outs = run_now(self, executable, lanes, *args)
            if np.any(self.split(outs)[1][STATUS]):
                return outs
        depth = self.depth or executable.depth
        while True:
            outs = run_now(replace(self, depth=depth), executable, lanes, *args)
            status = self.split(outs)[1][STATUS]
            deeper = None if self.depth is not None else executable.deeper(status, depth, LaneSharding(None, lanes))
            if deeper is None:
                executable.remember(depth)
                return outs
            depth = deeper

    def split(self, outs: Sequence[Any]) -> tuple[list[Any], dict[str, Any]]:
        """The leaves of the outcome, and the marks by key."""
        keys = self.keys
        count = len(outs) - len(keys)
        return list(outs[:count]), dict(zip(keys, outs[count:], strict=True))

    def abstract_eval(self, avals: Sequence[Any]) -> None:
        """As traced."""

    def batch(self, size: int, axes: Sequence[Axis]) -> BatchedOperation:
        return one_by_one(self, size, axes)

    def jvp(self, primals: Sequence[Any], tangents: Sequence[Any]) -> tuple[Sequence[Any], Sequence[Any]]:
        outs = bind(self, *primals)
        again = replace(self, depth=int(self.split(outs)[1][ROOM].shape[-1]))
        return outs, jvp_of(again, primals, tangents, outs)

    def transpose(self, cotangents: Sequence[Any], args: Sequence[Any]) -> Sequence[Any]:
        raise not_linear()


def run_with_snapshots(machine: Machine, state: State, marks: int) -> tuple[State, dict[str, Any]]:
    """The state at the end, and the marks."""
    blocks = machine.blocks(state)
    room = {key: jnp.zeros((marks, *x.shape), x.dtype) for key, x in state.carry.items()}

    def segment(c: tuple[Values, Values, jax.Array, jax.Array, jax.Array]) -> Any:
        carry, saved, stride, count, trips = c
        full = count >= marks * stride
        saved = _run_once(full, lambda s: {key: x.at[: marks // 2].set(x[::2]) for key, x in s.items()}, saved)
        stride = jnp.where(full, 2 * stride, stride)
        place = count // stride

        def mark(s: Values) -> Values:
            return {key: x.at[place].set(carry[key]) for key, x in s.items()}

        saved = _run_once(count % stride == 0, mark, saved)
        after = machine.advance(State(carry, state.shared, trips), SEGMENT)
        return after.carry, saved, stride, count + 1, after.trips

    one, none = jnp.ones((), jnp.int32), jnp.zeros((), jnp.int32)
    begin = (state.carry, room, one, none, state.trips)
    carry, saved, stride, count, trips = jax.lax.while_loop(lambda c: blocks.live(c[0]), segment, begin)
    left = {SNAPSHOT + key: x for key, x in saved.items()} | {STRIDE: stride, SEGMENTS: count}
    return State(carry, state.shared, trips), left


def _run_once(go: jax.Array, change: Any, values: Values) -> Values:
    """`change(values)` if `go`. A conditional would copy them."""
    done: Values = jax.lax.while_loop(lambda c: c[0], lambda c: (jnp.zeros((), bool), change(c[1])), (go, values))[1]
    return done
