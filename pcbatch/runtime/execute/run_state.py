"""A run between two trips: its arrays, and all that it takes to go on, here or in another process.

There are two kinds, as there are two ways to run a call: a lane for each input (`BatchRun`), and a queue of inputs
that fewer lanes take (`QueueRun`). Both are values: `advanced` donates the buffers of the state that it is asked of, so
whoever wants to keep that takes a `copied` first.

What a program leaves are buffers of its own: JAX does not promise that an argument which a program only passes on is
copied, and giving that away would take the caller's own array.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING, Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax.sharding import Mesh

from pcbatch.runtime.execute import queue_runner as streams
from pcbatch.runtime.execute.host_loop import HostLoop, RunCounts
from pcbatch.runtime.execute.queue_runner import QueueBuffers, QueueRunner
from pcbatch.runtime.execute.state_arrays import fitting, placed, total_of, trips_array
from pcbatch.runtime.sharding.lane_sharding import LaneSharding, ShardedArguments
from pcbatch.runtime.vm.block_body import Values
from pcbatch.runtime.vm.machine import State
from pcbatch.runtime.vm.raw_result import RawResult
from pcbatch.runtime.vm.status import Status

if TYPE_CHECKING:
    from pcbatch.runtime.execute.executor import PcExecutable


class Running(NamedTuple):
    """Where live lanes are: program counters, and the inputs that they run."""

    pc: np.ndarray
    inputs: np.ndarray


class BatchBuffers(NamedTuple):
    """The state of all lanes. What they share is not given away."""

    carry: Values
    trips: jax.Array
    shared: Values


class BatchProgress(NamedTuple):
    """How a machine of all lanes stands, on each device."""

    live: jax.Array
    full: jax.Array
    trips: jax.Array


@dataclass(frozen=True, slots=True)
class RunState:
    """A run between two trips. `lanes`: of a machine on each device."""

    executable: PcExecutable
    spread: LaneSharding
    lanes: int
    depth: int
    grows: bool
    standing: RunCounts
    state: Any  # the arrays; devices in front where there are several

    @property
    def ended(self) -> bool:
        """Has every input its end?"""
        return self.standing.finished == self.spread.inputs

    def copied(self) -> RunState:
        """The same in other buffers."""
        return replace(self, state=_copy(self.state))

    def advanced(self, watch: HostLoop) -> RunState:
        """After so many trips as the watch allows."""
        raise NotImplementedError

    def outcome(self) -> RawResult:
        """What there is so far."""
        raise NotImplementedError

    def running(self) -> Running:
        """Where live lanes are."""
        raise NotImplementedError

    def fits(self, arrays: Mapping[str, np.ndarray]) -> bool:
        """Are these arrays of the names, shapes and types of this state?"""
        return fitting(self.state, arrays)

    def restored(self, arrays: Mapping[str, np.ndarray]) -> RunState:
        """The same with arrays from elsewhere, by the names of `named`, on its devices."""
        return replace(self, state=placed(self.state, arrays, self.spread.mesh))

    def _numbers(self, slots: np.ndarray) -> np.ndarray:
        """Which inputs these are, by device and place on it."""
        devices = np.arange(self.spread.devices)[:, None]
        return slots.reshape(self.spread.devices, -1) * self.spread.devices + devices

    def _exit(self) -> int:
        return self.executable.machine.layout.exit


def begin(
    executable: PcExecutable, args: Mapping[str, Any], inputs: int, lanes: int | None, mesh: Mesh | None
) -> RunState:
    """Before the first trip. `lanes`: as `f.map` is asked for; None: what a plain call does with so many inputs."""
    spread = LaneSharding(mesh, inputs)
    width = executable.width(spread.each) if lanes is None else executable.stream_width(lanes, spread)
    queued = lanes is not None or width < spread.each
    width = executable.stream_width(width, spread) if queued else width
    kind = QueueRun if queued else BatchRun
    return kind.before(executable, spread, width, executable.placed(args, spread))


def like(
    executable: PcExecutable, args: Mapping[str, Any], inputs: int, mesh: Mesh | None, shape: Mapping[str, Any]
) -> RunState:
    """A run of this shape (see `shape_of`) with the types of its arrays, to be `restored`. `args` may be types too."""
    spread = LaneSharding(mesh, inputs)
    kind = QueueRun if shape["queued"] else BatchRun
    lanes, depth = int(shape["lanes"]), int(shape["depth"])
    executable.memory.check(spread, lanes, depth, spread.each if shape["queued"] else 0)
    state = kind.described(executable, args, spread, int(shape["width"]), depth)
    return kind(executable, spread, lanes, depth, bool(shape["grows"]), RunCounts(**shape["standing"]), state)


def shape_of(paused: RunState) -> dict[str, Any]:
    """What `like` needs to know, ready for JSON."""
    s = paused.standing
    now = int(paused.state.queue.item.shape[-1]) if isinstance(paused, QueueRun) else paused.lanes
    return {
        "queued": isinstance(paused, QueueRun),
        "lanes": paused.lanes,
        "width": now,
        "depth": paused.depth,
        "grows": paused.grows,
        "standing": {name: getattr(s, name) for name in RunCounts.__dataclass_fields__},
    }


@dataclass(frozen=True, slots=True)
class BatchRun(RunState):
    """A lane for each input. `state`: `BatchBuffers`."""

    @staticmethod
    def before(executable: PcExecutable, spread: LaneSharding, lanes: int, given: ShardedArguments) -> BatchRun:
        """Before the first trip."""
        depth, *known = executable.depths(("all", spread), spread, lanes, 0)
        state: BatchBuffers = executable.jitted(_begun, lanes)(given, spread=spread, depth=depth)
        for depth in known:  # the program for the last of them is there, and this one for the first
            carry = executable.jitted(_grow_all, lanes)(state.carry, spread=spread, depth=depth)
            state = state._replace(carry=carry)
        standing = RunCounts(spread.inputs, live=spread.inputs)
        return BatchRun(executable, spread, lanes, depth, executable.grows, standing, state)

    @staticmethod
    def described(executable: PcExecutable, args: Any, spread: LaneSharding, width: int, depth: int) -> Any:
        """The types of `state`."""
        return jax.eval_shape(
            lambda args: _begun(executable, executable.dealt(args, spread), spread=spread, depth=depth), args
        )

    def advanced(self, watch: HostLoop) -> RunState:
        watch.pace = self.executable.pace(self.lanes, "all")
        here = self
        while not here.ended and watch.may_continue():
            here = here._run(watch)
        if here.ended:
            self.executable.remember(here.depth)
        return here

    def _run(self, watch: HostLoop) -> BatchRun:
        run, most = self.executable.jitted(_run_all, self.lanes, (0,)), watch.limit((self.depth, self.spread))
        (carry, trips), seen = run(self.state[:2], self.state.shared, most, spread=self.spread)
        live, full = total_of(seen.live), total_of(seen.full) if self.grows else 0
        standing = self.standing.after(
            total_of(seen.trips),
            live,
            self.lanes * self.spread.devices,
            finished=self.spread.inputs - live - full,
            full=full > 0,
        )
        here = replace(self, state=BatchBuffers(carry, trips, self.state.shared), standing=standing)
        if full and not live:
            with watch.untimed():
                here = here._grown()
        watch.ran(int(np.max(np.asarray(seen.trips))), here.standing, lambda: here)
        return here

    def _grown(self) -> BatchRun:
        """With deeper stacks; or, if they may not get deeper, no longer waiting for that."""
        full = self.spread.inputs - self.standing.finished
        depth = self.executable.next_depth(self.depth, self.spread, self.lanes)
        if depth is None:
            standing = replace(self.standing, finished=self.spread.inputs, full=False)
            return replace(self, grows=False, standing=standing)
        self.executable.grew(("all", self.spread), self.depth, depth)
        carry = self.executable.jitted(_grow_all, self.lanes)(self.state.carry, spread=self.spread, depth=depth)
        standing = replace(self.standing, live=full, full=False)
        return replace(self, state=self.state._replace(carry=carry), depth=depth, standing=standing)

    def restored(self, arrays: Mapping[str, np.ndarray]) -> BatchRun:
        here = replace(self, state=placed(self.state, arrays, self.spread.mesh))
        full = int(np.sum(here._pc() // (self._exit() + 1) == int(Status.STACK_FULL)))
        room = self.executable.grows and self.executable.next_depth(self.depth, self.spread, self.lanes)
        if self.grows or not full or not room:
            return here
        # They had ended for want of memory, and may have more now.
        standing = replace(self.standing, finished=self.spread.inputs - full, full=True)
        return replace(here, grows=True, standing=standing)

    def outcome(self) -> RawResult:
        read = self.executable.jitted(_read_all, self.lanes)
        return _counted(self, read(self.state, spread=self.spread, depth=self.depth))

    def running(self) -> Running:
        pc = self._pc()
        live = pc < self._exit()
        return _in_order(pc[live], self._numbers(np.tile(np.arange(pc.shape[1]), pc.shape[0]))[live])

    def _pc(self) -> np.ndarray:
        return np.asarray(self.state.carry["pc"]).astype(np.int32).reshape(self.spread.devices, -1)


@dataclass(frozen=True, slots=True)
class QueueRun(RunState):
    """Fewer lanes than inputs. `state`: `QueueBuffers`."""

    @staticmethod
    def before(executable: PcExecutable, spread: LaneSharding, lanes: int, given: ShardedArguments) -> QueueRun:
        """Before the first trip."""
        stream = QueueRunner(executable, spread, lanes)
        state = stream.begin(given, spread.each)
        standing = RunCounts(spread.inputs, waiting=spread.inputs)
        return QueueRun(executable, spread, lanes, stream.depth, executable.grows, standing, state)

    @staticmethod
    def described(executable: PcExecutable, args: Any, spread: LaneSharding, width: int, depth: int) -> Any:
        """The types of `state`."""
        make = partial(streams.begin, executable, spread=spread, lanes=width, slots=spread.each, depth=depth)
        return QueueBuffers(*jax.eval_shape(lambda args: make(executable.dealt(args, spread)), args))

    def advanced(self, watch: HostLoop) -> RunState:
        stream = QueueRunner(self.executable, self.spread, self.lanes, watch)
        stream.depth, stream.grows, stream.standing = self.depth, self.grows, self.standing
        stream.snapshot = partial(self._now, stream)
        if self.ended or not watch.may_continue():
            return self
        here = self._now(stream, stream.to_the_end(self.state, 0, self.spread.inputs))
        if here.ended:
            self.executable.remember(here.depth)
        return here

    def _now(self, stream: QueueRunner, begun: QueueBuffers) -> QueueRun:
        return replace(self, state=begun, depth=stream.depth, grows=stream.grows, standing=stream.standing)

    def outcome(self) -> RawResult:
        read = self.executable.jitted(_read_queue, self.lanes)
        out = _counted(self, read(self.state, spread=self.spread, depth=self.depth))
        if self.ended:
            return out
        layout = self.executable.machine.layout  # what has no results has left no program counter either
        pc = np.where(np.asarray(out.status) == int(Status.RUNNING), layout.index[layout.program.entry], out.pc)
        pcs, inputs = self.running()
        pc[inputs] = pcs
        return replace(out, pc=pc)

    def running(self) -> Running:
        q = self.state.queue
        pc, item = (np.asarray(x).reshape(self.spread.devices, -1) for x in (q.state.carry["pc"], q.item))
        live = (pc < self._exit()) & (item < q.slots)
        return _in_order(pc[live], self._numbers(item)[live])


def _in_order(pc: np.ndarray, inputs: np.ndarray) -> Running:
    order = np.argsort(inputs)
    return Running(pc[order].astype(np.int64), inputs[order])


def _counted(paused: RunState, out: RawResult) -> RawResult:
    """The outcome of one device's or several devices' machines, with the trips that the host has counted."""
    found = paused.executable.gathered(out, paused.spread)
    return replace(found, trips=trips_array(paused.standing.trips), depth=paused.depth)


# The programs


@jax.jit
def _copy(tree: Any) -> Any:
    return jax.tree.map(jnp.copy, tree)


def _begun(executable: PcExecutable, given: ShardedArguments, *, spread: LaneSharding, depth: int) -> BatchBuffers:
    def body(given: ShardedArguments, common: Any) -> BatchBuffers:
        args = executable.natural({**given.mapped, **common})
        state = executable.machine.start(args, spread.each, depth, given.end, given.names)
        return BatchBuffers(jax.tree.map(jnp.copy, state.carry), state.trips, state.shared)

    begun: BatchBuffers = spread.run(body, given.without_common(), given.common)
    return begun


def _run_all(
    executable: PcExecutable, bare: tuple[Values, jax.Array], shared: Values, most: jax.Array, *, spread: LaneSharding
) -> tuple[tuple[Values, jax.Array], BatchProgress]:
    machine = executable.machine

    def body(
        given: tuple[Values, jax.Array, Values], most: jax.Array
    ) -> tuple[tuple[Values, jax.Array], BatchProgress]:
        carry, trips, shared = given
        state = machine.advance(State(carry, shared, trips), most)
        pc = state.carry["pc"].astype(jnp.int32)
        full = pc // (machine.layout.exit + 1) == int(Status.STACK_FULL)
        live = jnp.sum(pc < machine.layout.exit, dtype=jnp.int32)
        return (state.carry, state.trips), BatchProgress(live, jnp.sum(full, dtype=jnp.int32), state.trips - trips)

    ran: tuple[tuple[Values, jax.Array], BatchProgress] = spread.run(body, (*bare, shared), most)
    return ran


def _grow_all(executable: PcExecutable, carry: Values, *, spread: LaneSharding, depth: int) -> Values:
    def body(carry: Values, _: None) -> Values:
        return executable.machine.grow(State(carry, {}, jnp.zeros((), jnp.int32)), depth).carry

    grown: Values = spread.run(body, carry, None)
    return grown


def _read_all(executable: PcExecutable, bare: BatchBuffers, *, spread: LaneSharding, depth: int) -> RawResult:
    def body(bare: BatchBuffers, _: None) -> RawResult:
        return _own(executable.read(State(bare.carry, bare.shared, bare.trips), depth))

    out: RawResult = spread.run(body, bare, None)
    return out


def _read_queue(executable: PcExecutable, begun: QueueBuffers, *, spread: LaneSharding, depth: int) -> RawResult:
    def body(begun: QueueBuffers, _: None) -> RawResult:
        q = streams.with_shared(begun.queue, begun.shared)
        return _own(executable.drained(q, depth))

    out: RawResult = spread.run(body, begun, None)
    return out


def _own(out: RawResult) -> RawResult:
    """An outcome that shares no buffer with the state. Values never do: they are selected from it."""
    own: RawResult = jax.tree.map(jnp.copy, replace(out, values=()))
    return replace(own, values=out.values)
