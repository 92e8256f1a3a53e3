"""A run between two trips: its arrays, and all that it takes to go on, here or in another process.

There are two kinds, as there are two ways to run a call: a lane for each input (`AllLanes`), and a queue of inputs
that fewer lanes take (`Queued`). Both are values: `advanced` gives the buffers of what it is asked of away, so whoever
wants to keep that takes a `copied` first.

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
from pcbatch.runtime.execute.host_loop import Standing, Watch
from pcbatch.runtime.execute.queue_runner import Begun, Stream
from pcbatch.runtime.execute.state_arrays import fitting, placed, total_of, trips_array
from pcbatch.runtime.sharding.lane_sharding import Dealt, Spread
from pcbatch.runtime.vm.block_body import Values
from pcbatch.runtime.vm.machine import State
from pcbatch.runtime.vm.raw_result import Outcome
from pcbatch.runtime.vm.status import Status

if TYPE_CHECKING:
    from pcbatch.runtime.execute.executor import PcExecutable


class Running(NamedTuple):
    """Where live lanes are: program counters, and the inputs that they run."""

    pc: np.ndarray
    inputs: np.ndarray


class _Bare(NamedTuple):
    """The state of all lanes. What they share is not given away."""

    carry: Values
    trips: jax.Array
    shared: Values


class _Seen(NamedTuple):
    """How a machine of all lanes stands, on each device."""

    live: jax.Array
    full: jax.Array
    trips: jax.Array


@dataclass(frozen=True, slots=True)
class Paused:
    """A run between two trips. `lanes`: of a machine on each device."""

    executable: PcExecutable
    spread: Spread
    lanes: int
    depth: int
    grows: bool
    standing: Standing
    state: Any  # the arrays; devices in front where there are several

    @property
    def ended(self) -> bool:
        """Has every input its end?"""
        return self.standing.finished == self.spread.inputs

    def copied(self) -> Paused:
        """The same in other buffers."""
        return replace(self, state=_copy(self.state))

    def advanced(self, watch: Watch) -> Paused:
        """After so many trips as the watch allows."""
        raise NotImplementedError

    def outcome(self) -> Outcome:
        """What there is so far."""
        raise NotImplementedError

    def running(self) -> Running:
        """Where live lanes are."""
        raise NotImplementedError

    def fits(self, arrays: Mapping[str, np.ndarray]) -> bool:
        """Are these arrays of the names, shapes and types of this state?"""
        return fitting(self.state, arrays)

    def restored(self, arrays: Mapping[str, np.ndarray]) -> Paused:
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
) -> Paused:
    """Before the first trip. `lanes`: as `f.map` is asked for; None: what a plain call does with so many inputs."""
    spread = Spread(mesh, inputs)
    width = executable.width(spread.each) if lanes is None else executable.stream_width(lanes, spread)
    queued = lanes is not None or width < spread.each
    width = executable.stream_width(width, spread) if queued else width
    depth = executable.fitting(spread, width, spread.each if queued else 0)
    kind = Queued if queued else AllLanes
    return kind.before(executable, spread, width, depth, executable.placed(args, spread))


def like(
    executable: PcExecutable, args: Mapping[str, Any], inputs: int, mesh: Mesh | None, shape: Mapping[str, Any]
) -> Paused:
    """A run of this shape (see `shape_of`) with the types of its arrays, to be `restored`. `args` may be types too."""
    spread = Spread(mesh, inputs)
    kind = Queued if shape["queued"] else AllLanes
    lanes, depth = int(shape["lanes"]), int(shape["depth"])
    executable.memory.check(spread, lanes, depth, spread.each if shape["queued"] else 0)
    state = kind.described(executable, args, spread, int(shape["width"]), depth)
    return kind(executable, spread, lanes, depth, bool(shape["grows"]), Standing(**shape["standing"]), state)


def shape_of(paused: Paused) -> dict[str, Any]:
    """What `like` needs to know, ready for JSON."""
    s = paused.standing
    now = int(paused.state.queue.item.shape[-1]) if isinstance(paused, Queued) else paused.lanes
    return {
        "queued": isinstance(paused, Queued),
        "lanes": paused.lanes,
        "width": now,
        "depth": paused.depth,
        "grows": paused.grows,
        "standing": {name: getattr(s, name) for name in Standing.__dataclass_fields__},
    }


@dataclass(frozen=True, slots=True)
class AllLanes(Paused):
    """A lane for each input. `state`: `_Bare`."""

    @staticmethod
    def before(executable: PcExecutable, spread: Spread, lanes: int, depth: int, given: Dealt) -> AllLanes:
        """Before the first trip."""
        state = executable.jitted(_begun, lanes)(given, spread=spread, depth=depth)
        standing = Standing(spread.inputs, live=spread.inputs)
        return AllLanes(executable, spread, lanes, depth, executable.grows, standing, state)

    @staticmethod
    def described(executable: PcExecutable, args: Any, spread: Spread, width: int, depth: int) -> Any:
        """The types of `state`."""
        return jax.eval_shape(
            lambda args: _begun(executable, executable.dealt(args, spread), spread=spread, depth=depth), args
        )

    def advanced(self, watch: Watch) -> Paused:
        watch.pace = self.executable.pace(self.lanes, "all")
        here = self
        while not here.ended and watch.look():
            here = here._run(watch)
        if here.ended:
            self.executable.remember(here.depth)
        return here

    def _run(self, watch: Watch) -> AllLanes:
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
        here = replace(self, state=_Bare(carry, trips, self.state.shared), standing=standing)
        if full and not live:
            with watch.aside():
                here = here._grown()
        watch.ran(int(np.max(np.asarray(seen.trips))), here.standing, lambda: here)
        return here

    def _grown(self) -> AllLanes:
        """With deeper stacks; or, if they may not get deeper, no longer waiting for that."""
        full = self.spread.inputs - self.standing.finished
        if not self.executable.may_deepen(self.depth, self.spread, self.lanes):
            standing = replace(self.standing, finished=self.spread.inputs, full=False)
            return replace(self, grows=False, standing=standing)
        depth = 2 * self.depth
        carry = self.executable.jitted(_grow_all, self.lanes)(self.state.carry, spread=self.spread, depth=depth)
        standing = replace(self.standing, live=full, full=False)
        return replace(self, state=self.state._replace(carry=carry), depth=depth, standing=standing)

    def restored(self, arrays: Mapping[str, np.ndarray]) -> AllLanes:
        here = replace(self, state=placed(self.state, arrays, self.spread.mesh))
        full = int(np.sum(here._pc() // (self._exit() + 1) == int(Status.STACK_FULL)))
        room = self.executable.grows and self.executable.may_deepen(self.depth, self.spread, self.lanes)
        if self.grows or not full or not room:
            return here
        # They had ended for want of memory, and may have more now.
        standing = replace(self.standing, finished=self.spread.inputs - full, full=True)
        return replace(here, grows=True, standing=standing)

    def outcome(self) -> Outcome:
        read = self.executable.jitted(_read_all, self.lanes)
        return _counted(self, read(self.state, spread=self.spread, depth=self.depth))

    def running(self) -> Running:
        pc = self._pc()
        live = pc < self._exit()
        return _in_order(pc[live], self._numbers(np.tile(np.arange(pc.shape[1]), pc.shape[0]))[live])

    def _pc(self) -> np.ndarray:
        return np.asarray(self.state.carry["pc"]).astype(np.int32).reshape(self.spread.devices, -1)


@dataclass(frozen=True, slots=True)
class Queued(Paused):
    """Fewer lanes than inputs. `state`: `Begun`."""

    @staticmethod
    def before(executable: PcExecutable, spread: Spread, lanes: int, depth: int, given: Dealt) -> Queued:
        """Before the first trip."""
        stream = Stream(executable, spread, lanes)
        state = stream.begin(given, spread.each)
        standing = Standing(spread.inputs, waiting=spread.inputs)
        return Queued(executable, spread, lanes, depth, executable.grows, standing, state)

    @staticmethod
    def described(executable: PcExecutable, args: Any, spread: Spread, width: int, depth: int) -> Any:
        """The types of `state`."""
        make = partial(streams.begin, executable, spread=spread, lanes=width, slots=spread.each, depth=depth)
        return Begun(*jax.eval_shape(lambda args: make(executable.dealt(args, spread)), args))

    def advanced(self, watch: Watch) -> Paused:
        stream = Stream(self.executable, self.spread, self.lanes, watch)
        stream.depth, stream.grows, stream.standing = self.depth, self.grows, self.standing
        stream.snapshot = partial(self._now, stream)
        if self.ended or not watch.look():
            return self
        here = self._now(stream, stream.to_the_end(self.state, 0, self.spread.inputs))
        if here.ended:
            self.executable.remember(here.depth)
        return here

    def _now(self, stream: Stream, begun: Begun) -> Queued:
        return replace(self, state=begun, depth=stream.depth, grows=stream.grows, standing=stream.standing)

    def outcome(self) -> Outcome:
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


def _counted(paused: Paused, out: Outcome) -> Outcome:
    """The outcome of one device's or several devices' machines, with the trips that the host has counted."""
    found = paused.executable.gathered(out, paused.spread)
    return replace(found, trips=trips_array(paused.standing.trips), depth=paused.depth)


# The programs


@jax.jit
def _copy(tree: Any) -> Any:
    return jax.tree.map(jnp.copy, tree)


def _begun(executable: PcExecutable, given: Dealt, *, spread: Spread, depth: int) -> _Bare:
    def body(given: Dealt, common: Any) -> _Bare:
        args = executable.natural({**given.mapped, **common})
        state = executable.machine.start(args, spread.each, depth, given.end, given.names)
        return _Bare(jax.tree.map(jnp.copy, state.carry), state.trips, state.shared)

    begun: _Bare = spread.run(body, given.without_common(), given.common)
    return begun


def _run_all(
    executable: PcExecutable, bare: tuple[Values, jax.Array], shared: Values, most: jax.Array, *, spread: Spread
) -> tuple[tuple[Values, jax.Array], _Seen]:
    machine = executable.machine

    def body(given: tuple[Values, jax.Array, Values], most: jax.Array) -> tuple[tuple[Values, jax.Array], _Seen]:
        carry, trips, shared = given
        state = machine.advance(State(carry, shared, trips), most)
        pc = state.carry["pc"].astype(jnp.int32)
        full = pc // (machine.layout.exit + 1) == int(Status.STACK_FULL)
        live = jnp.sum(pc < machine.layout.exit, dtype=jnp.int32)
        return (state.carry, state.trips), _Seen(live, jnp.sum(full, dtype=jnp.int32), state.trips - trips)

    ran: tuple[tuple[Values, jax.Array], _Seen] = spread.run(body, (*bare, shared), most)
    return ran


def _grow_all(executable: PcExecutable, carry: Values, *, spread: Spread, depth: int) -> Values:
    def body(carry: Values, _: None) -> Values:
        return executable.machine.grow(State(carry, {}, jnp.zeros((), jnp.int32)), depth).carry

    grown: Values = spread.run(body, carry, None)
    return grown


def _read_all(executable: PcExecutable, bare: _Bare, *, spread: Spread, depth: int) -> Outcome:
    def body(bare: _Bare, _: None) -> Outcome:
        return _own(executable.read(State(bare.carry, bare.shared, bare.trips), depth))

    out: Outcome = spread.run(body, bare, None)
    return out


def _read_queue(executable: PcExecutable, begun: Begun, *, spread: Spread, depth: int) -> Outcome:
    def body(begun: Begun, _: None) -> Outcome:
        q = streams.clothed(begun.queue, begun.shared)
        return _own(executable.drained(q, depth))

    out: Outcome = spread.run(body, begun, None)
    return out


def _own(out: Outcome) -> Outcome:
    """An outcome that shares no buffer with the state. Values never do: they are selected from it."""
    own: Outcome = jax.tree.map(jnp.copy, replace(out, values=()))
    return replace(own, values=out.values)
