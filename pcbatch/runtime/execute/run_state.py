"""A run between two trips: its arrays, and all that it takes to continue it, here or in another process.

There is a kind for each way to run a call: a lane for each input (`BatchRun`), a queue of inputs that fewer lanes take
(`queue_run.py`), and tasks (`task_run.py`). All are values: `advanced` donates the buffers of its state, so whoever
wants to keep that state takes a `copied` first. Their fields are what a file keeps of them (`run_kinds.py`).

The results of a program are buffers of its own: JAX does not promise that an argument which a program only passes on is
copied, and donating that later would take the caller's own array.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING, Any, NamedTuple, Self

import jax
import jax.numpy as jnp
import numpy as np

from pcbatch.runtime.execute.batch_programs import BatchBuffers, begin_batch, grow_batch, read_batch, run_trips
from pcbatch.runtime.execute.call_values import gathered
from pcbatch.runtime.execute.host_loop import HostLoop, RunCounts
from pcbatch.runtime.execute.state_arrays import fitting, placed, total_of, trips_array
from pcbatch.runtime.sharding.lane_sharding import LaneSharding, ShardedArguments
from pcbatch.runtime.vm.raw_result import RawResult
from pcbatch.runtime.vm.status import Status

if TYPE_CHECKING:
    from pcbatch.runtime.execute.executor import PcExecutable


class Running(NamedTuple):
    """The live lanes, in the order of their inputs.

    Attributes:
        pc: int64[live], program counters.
        inputs: int[live], the numbers of the inputs that they run.
    """

    pc: np.ndarray
    inputs: np.ndarray


@dataclass(frozen=True, slots=True)
class RunState:
    """A run between two trips, and all that it takes to continue it.

    Attributes:
        executable: the program.
        sharding: which inputs are on which device.
        lanes: lanes of the machine on each device.
        depth: the depth of the stacks.
        grows: whether they may grow.
        counts: how far the run is.
        state: the arrays; devices in front where there are several.
    """

    executable: PcExecutable
    sharding: LaneSharding
    lanes: int
    depth: int
    grows: bool
    counts: RunCounts
    state: Any

    @property
    def ended(self) -> bool:
        """Whether every input has ended."""
        return self.counts.finished == self.sharding.inputs

    def copied(self) -> Self:
        """Return this run with its arrays in other buffers."""
        return replace(self, state=_copy(self.state))

    def advanced(self, watch: HostLoop) -> Self:
        """Run on, as far as the watch allows; the buffers of this state are donated."""
        later = self
        while not later.ended and watch.may_continue():
            later = later.moved(watch)
            watch.between(later.counts, lambda later=later: later)
        if later.ended:
            later.remember()
        return later

    def moved(self, watch: HostLoop) -> Self:
        """Run one program, and what follows it on the host: more room, or fewer lanes."""
        raise NotImplementedError

    def remember(self) -> None:
        """Let the next run begin with as much room."""
        self.executable.stacks.remember(self.depth)

    def outcome(self) -> RawResult:
        """Read the raw result so far."""
        raise NotImplementedError

    def running(self) -> Running:
        """Read which lanes live, and where."""
        raise NotImplementedError

    def fits(self, arrays: Mapping[str, np.ndarray]) -> bool:
        """Whether these arrays have the names, shapes and types of this state."""
        return fitting(self.state, arrays)

    def restored(self, arrays: Mapping[str, np.ndarray]) -> Self:
        """Put arrays by the names of `named`, which `fits` has accepted, into this state, on its devices."""
        return replace(self, state=placed(self.state, arrays, self.sharding.mesh))

    def described(self, args: Any) -> Self:
        """Return this run with the types of its arrays; `args`: those of the call, or their types.

        Raises:
            TooLargeError: there is no memory for it.
        """
        raise NotImplementedError

    def _sharded(self, args: Any) -> ShardedArguments:
        """The types of the arguments on their devices."""
        shard = partial(self.executable.arguments.sharded, sharding=self.sharding)
        given: ShardedArguments = jax.eval_shape(shard, args)
        return given

    def _deeper(self, kind: str, width: int) -> int | None:
        """Return the next depth of the stacks of machines of this kind and width; None if they may not grow."""
        growth = self.executable.stacks.resumed_growth(kind, self.sharding, self.lanes, self.depth, self.grows)
        return growth.depth if growth.grow(width) else None

    def _numbers(self, slots: np.ndarray) -> np.ndarray:
        """The numbers of the inputs in these slots, [devices, ...]."""
        devices = np.arange(self.sharding.devices)[:, None]
        return slots.reshape(self.sharding.devices, -1) * self.sharding.devices + devices

    def _exit(self) -> int:
        return self.executable.machine.layout.exit


@dataclass(frozen=True, slots=True)
class BatchRun(RunState):
    """A lane for each input. `state`: `BatchBuffers`."""

    @staticmethod
    def before(executable: PcExecutable, sharding: LaneSharding, lanes: int, given: ShardedArguments) -> BatchRun:
        """Return a run before its first trip."""
        growth = executable.stacks.repeated_growth("all", sharding, lanes, 0)
        state: BatchBuffers = executable.jitted(begin_batch, lanes)(given, spread=sharding, depth=growth.depth)
        while growth.repeat():  # the program for the last depth is there, and `begin_batch` for the first
            carry = executable.jitted(grow_batch, lanes)(state.carry, spread=sharding, depth=growth.depth)
            state = state._replace(carry=carry)
        counts = RunCounts(sharding.inputs, live=sharding.inputs)
        return BatchRun(executable, sharding, lanes, growth.depth, growth.grows, counts, state)

    def described(self, args: Any) -> Self:
        self.executable.memory.check(self.sharding, self.lanes, self.depth, 0)
        begin = partial(begin_batch, self.executable, spread=self.sharding, depth=self.depth)
        return replace(self, state=jax.eval_shape(begin, self._sharded(args)))

    def moved(self, watch: HostLoop) -> Self:
        watch.pace = self.executable.pace(self.lanes, "all")
        program = self.executable.jitted(run_trips, self.lanes)
        with watch.program((self.depth, self.sharding)) as run:
            (carry, trips), seen = program(
                self.state[:2], self.state.shared, np.int32(run.budget), spread=self.sharding
            )
            live, full = total_of(seen.live), total_of(seen.full) if self.grows else 0
            run.made = int(np.max(np.asarray(seen.trips)))
        counts = self.counts.after(
            total_of(seen.trips),
            live,
            self.lanes * self.sharding.devices,
            finished=self.sharding.inputs - live - full,
            full=full > 0,
        )
        later = replace(self, state=BatchBuffers(carry, trips, self.state.shared), counts=counts)
        if not full or live:
            return later
        with watch.untimed():
            return later._grown()

    def _grown(self) -> Self:
        """The run with deeper stacks; or, if they may not get deeper, no longer waiting for that."""
        full = self.sharding.inputs - self.counts.finished
        if (deeper := self._deeper("all", self.lanes)) is None:
            counts = replace(self.counts, finished=self.sharding.inputs, full=False)
            return replace(self, grows=False, counts=counts)
        grow = self.executable.jitted(grow_batch, self.lanes)
        carry = grow(self.state.carry, spread=self.sharding, depth=deeper)
        counts = replace(self.counts, live=full, full=False)
        return replace(self, state=self.state._replace(carry=carry), depth=deeper, counts=counts)

    def restored(self, arrays: Mapping[str, np.ndarray]) -> Self:
        run = replace(self, state=placed(self.state, arrays, self.sharding.mesh))
        full = int(np.sum(run._pc() // (self._exit() + 1) == int(Status.STACK_FULL)))
        stacks = self.executable.stacks
        room = stacks.grows and stacks.next(self.depth, self.sharding, self.lanes)
        if self.grows or not full or not room:
            return run
        # They had ended for want of memory, and may have more now.
        counts = replace(self.counts, finished=self.sharding.inputs - full, full=True)
        return replace(run, grows=True, counts=counts)

    def outcome(self) -> RawResult:
        read = self.executable.jitted(read_batch, self.lanes)
        out = gathered(self.executable, read(self.state, spread=self.sharding, depth=self.depth), self.sharding)
        return counted(self, out)

    def running(self) -> Running:
        pc = self._pc()
        live = pc < self._exit()
        return in_order(pc[live], self._numbers(np.tile(np.arange(pc.shape[1]), pc.shape[0]))[live])

    def _pc(self) -> np.ndarray:
        return np.asarray(self.state.carry["pc"]).astype(np.int32).reshape(self.sharding.devices, -1)


def in_order(pc: np.ndarray, inputs: np.ndarray) -> Running:
    """Return live lanes in the order of their inputs."""
    order = np.argsort(inputs)
    return Running(pc[order].astype(np.int64), inputs[order])


def counted(paused: RunState, out: RawResult) -> RawResult:
    """Return the raw result of a run, with the trips that the host has counted."""
    return replace(out, trips=trips_array(paused.counts.trips), depth=paused.depth)


@jax.jit
def _copy(tree: Any) -> Any:
    return jax.tree.map(jnp.copy, tree)
