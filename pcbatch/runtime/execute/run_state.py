"""A run between two trips: its arrays, and all that it takes to continue it, here or in another process.

There are two kinds, as there are two ways to run a call: a lane for each input (`BatchRun`), and a queue of inputs
that fewer lanes take (`QueueRun`). Both are values: `advanced` donates the buffers of its state, so whoever wants to
keep that state takes a `copied` first.

The results of a program are buffers of its own: JAX does not promise that an argument which a program only passes on is
copied, and donating that later would take the caller's own array.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, replace
from functools import partial
from typing import TYPE_CHECKING, Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax.sharding import Mesh

from pcbatch.runtime.execute import queue_programs
from pcbatch.runtime.execute.batch_programs import (
    BatchBuffers,
    begin_batch,
    grow_batch,
    own_buffers,
    read_batch,
    run_trips,
)
from pcbatch.runtime.execute.host_loop import HostLoop, RunCounts
from pcbatch.runtime.execute.program_cache import device_program
from pcbatch.runtime.execute.queue_programs import QueueBuffers
from pcbatch.runtime.execute.queue_runner import QueueRunner
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

    def copied(self) -> RunState:
        """Return this run with its arrays in other buffers."""
        return replace(self, state=_copy(self.state))

    def advanced(self, watch: HostLoop) -> RunState:
        """Run on, as far as the watch allows; the buffers of this state are donated."""
        raise NotImplementedError

    def outcome(self) -> RawResult:
        """Read the raw result so far."""
        raise NotImplementedError

    def running(self) -> Running:
        """Read which lanes live, and where."""
        raise NotImplementedError

    def fits(self, arrays: Mapping[str, np.ndarray]) -> bool:
        """Whether these arrays have the names, shapes and types of this state."""
        return fitting(self.state, arrays)

    def restored(self, arrays: Mapping[str, np.ndarray]) -> RunState:
        """Put arrays by the names of `named`, which `fits` has accepted, into this state, on its devices."""
        return replace(self, state=placed(self.state, arrays, self.sharding.mesh))

    def shape(self) -> dict[str, Any]:
        """The argument `shape` of `like`, ready for JSON."""
        queued = isinstance(self, QueueRun)
        return {
            "queued": queued,
            "lanes": self.lanes,
            "width": int(self.state.queue.item.shape[-1]) if queued else self.lanes,
            "depth": self.depth,
            "grows": self.grows,
            "standing": asdict(self.counts),
        }

    def _numbers(self, slots: np.ndarray) -> np.ndarray:
        """The numbers of the inputs in these slots, [devices, ...]."""
        devices = np.arange(self.sharding.devices)[:, None]
        return slots.reshape(self.sharding.devices, -1) * self.sharding.devices + devices

    def _exit(self) -> int:
        return self.executable.machine.layout.exit


def begin(
    executable: PcExecutable, args: Mapping[str, Any], inputs: int, lanes: int | None, mesh: Mesh | None
) -> RunState:
    """Return a run before its first trip.

    Args:
        executable: the program.
        args: the arguments of the call.
        inputs: the number of inputs.
        lanes: the lanes that `f.map` was asked for; None: a plain call, which may become a queue as well.
        mesh: the devices.
    """
    sharding = LaneSharding(mesh, inputs)
    width = executable.width(sharding.each) if lanes is None else executable.queue_width(lanes, sharding)
    queued = lanes is not None or width < sharding.each
    width = executable.queue_width(width, sharding) if queued else width
    kind = QueueRun if queued else BatchRun
    return kind.before(executable, sharding, width, executable.placed(args, sharding))


def like(
    executable: PcExecutable, args: Mapping[str, Any], inputs: int, mesh: Mesh | None, shape: Mapping[str, Any]
) -> RunState:
    """Return a run of this shape (see `shape`) with the types of its arrays, to be `restored`. `args` may be types
    too.

    Raises:
        TooLargeError: there is no memory for it.
    """
    sharding = LaneSharding(mesh, inputs)
    kind = QueueRun if shape["queued"] else BatchRun
    lanes, depth = int(shape["lanes"]), int(shape["depth"])
    executable.memory.check(sharding, lanes, depth, sharding.each if shape["queued"] else 0)
    state = kind.described(executable, args, sharding, int(shape["width"]), depth)
    return kind(executable, sharding, lanes, depth, bool(shape["grows"]), RunCounts(**shape["standing"]), state)


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

    @staticmethod
    def described(executable: PcExecutable, args: Any, sharding: LaneSharding, width: int, depth: int) -> Any:
        """The types of the arrays in `state`, of `width` lanes."""
        return jax.eval_shape(
            lambda args: begin_batch(
                executable, executable.arguments.sharded(args, sharding), spread=sharding, depth=depth
            ),
            args,
        )

    def advanced(self, watch: HostLoop) -> RunState:
        watch.pace = self.executable.pace(self.lanes, "all")
        later = self
        while not later.ended and watch.may_continue():
            later = later._run(watch)
        if later.ended:
            self.executable.stacks.remember(later.depth)
        return later

    def _run(self, watch: HostLoop) -> BatchRun:
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
        if full and not live:
            with watch.untimed():
                later = later._grown()
        watch.between(later.counts, lambda: later)
        return later

    def _grown(self) -> BatchRun:
        """The run with deeper stacks; or, if they may not get deeper, no longer waiting for that."""
        full = self.sharding.inputs - self.counts.finished
        growth = self.executable.stacks.resumed_growth("all", self.sharding, self.lanes, self.depth, self.grows)
        if not growth.grow(self.lanes):
            counts = replace(self.counts, finished=self.sharding.inputs, full=False)
            return replace(self, grows=False, counts=counts)
        grow = self.executable.jitted(grow_batch, self.lanes)
        carry = grow(self.state.carry, spread=self.sharding, depth=growth.depth)
        counts = replace(self.counts, live=full, full=False)
        return replace(self, state=self.state._replace(carry=carry), depth=growth.depth, counts=counts)

    def restored(self, arrays: Mapping[str, np.ndarray]) -> BatchRun:
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
        return _counted(self, read(self.state, spread=self.sharding, depth=self.depth))

    def running(self) -> Running:
        pc = self._pc()
        live = pc < self._exit()
        return _in_order(pc[live], self._numbers(np.tile(np.arange(pc.shape[1]), pc.shape[0]))[live])

    def _pc(self) -> np.ndarray:
        return np.asarray(self.state.carry["pc"]).astype(np.int32).reshape(self.sharding.devices, -1)


@dataclass(frozen=True, slots=True)
class QueueRun(RunState):
    """Fewer lanes than inputs. `state`: `QueueBuffers`."""

    @staticmethod
    def before(executable: PcExecutable, sharding: LaneSharding, lanes: int, given: ShardedArguments) -> QueueRun:
        """Return a run before its first trip."""
        runner = QueueRunner(executable, sharding, lanes)
        state = runner.begin(given, sharding.each)
        counts = RunCounts(sharding.inputs, waiting=sharding.inputs)
        return QueueRun(executable, sharding, lanes, runner.depth, executable.stacks.grows, counts, state)

    @staticmethod
    def described(executable: PcExecutable, args: Any, sharding: LaneSharding, width: int, depth: int) -> Any:
        """The types of the arrays in `state`, of `width` lanes."""
        make = partial(queue_programs.begin, executable, spread=sharding, lanes=width, slots=sharding.each, depth=depth)
        return QueueBuffers(*jax.eval_shape(lambda args: make(executable.arguments.sharded(args, sharding)), args))

    def advanced(self, watch: HostLoop) -> RunState:
        runner = QueueRunner(self.executable, self.sharding, self.lanes, watch)
        runner.growth.depth, runner.growth.grows, runner.counts = self.depth, self.grows, self.counts
        runner.snapshot = partial(self._after, runner)
        if self.ended or not watch.may_continue():
            return self
        later = self._after(runner, runner.to_the_end(self.state))
        if later.ended:
            self.executable.stacks.remember(later.depth)
        return later

    def _after(self, runner: QueueRunner, buffers: QueueBuffers) -> QueueRun:
        growth = runner.growth
        return replace(self, state=buffers, depth=growth.depth, grows=growth.grows, counts=runner.counts)

    def outcome(self) -> RawResult:
        read = self.executable.jitted(_read_queue, self.lanes)
        out = _counted(self, read(self.state, spread=self.sharding, depth=self.depth))
        if self.ended:
            return out
        layout = self.executable.machine.layout  # what has no results has left no program counter either
        pc = np.where(np.asarray(out.status) == int(Status.RUNNING), layout.index[layout.program.entry], out.pc)
        pcs, inputs = self.running()
        pc[inputs] = pcs
        return replace(out, pc=pc)

    def running(self) -> Running:
        q = self.state.queue
        pc, item = (np.asarray(x).reshape(self.sharding.devices, -1) for x in (q.state.carry["pc"], q.item))
        live = (pc < self._exit()) & (item < q.slots)
        return _in_order(pc[live], self._numbers(item)[live])


def _in_order(pc: np.ndarray, inputs: np.ndarray) -> Running:
    order = np.argsort(inputs)
    return Running(pc[order].astype(np.int64), inputs[order])


def _counted(paused: RunState, out: RawResult) -> RawResult:
    """The raw result of all devices' machines, with the trips that the host has counted."""
    gathered = paused.executable.gathered(out, paused.sharding)
    return replace(gathered, trips=trips_array(paused.counts.trips), depth=paused.depth)


# The programs


@jax.jit
def _copy(tree: Any) -> Any:
    return jax.tree.map(jnp.copy, tree)


@device_program("spread", "depth")
def _read_queue(executable: PcExecutable, begun: QueueBuffers, *, spread: LaneSharding, depth: int) -> RawResult:
    def body(begun: QueueBuffers, _: None) -> RawResult:
        q = queue_programs.with_shared(begun.queue, begun.shared)
        return own_buffers(executable.results.of_queue(q, depth))

    out: RawResult = spread.run(body, begun, None)
    return out
