"""Runs of a task program on several devices, driven by the host.

Many examples are dealt out, and each device has a machine of its own. Of few examples the tasks are dealt out
(`spread.py`): the first device runs until there are enough, each of all runs its part to the end, and the first one
goes on with what they have brought. No collective is needed: one would wait for the slowest device, see
`LaneSharding.fetched`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax.sharding import NamedSharding

from pcbatch.runtime.lowering_platform import lowering_platform
from pcbatch.runtime.sharding.lane_sharding import LaneSharding, ShardedArguments, partition_spec
from pcbatch.runtime.tasks import spread, state
from pcbatch.runtime.tasks.executable import TaskExecutable
from pcbatch.runtime.tasks.growing import Kept, Outcome, Stretch
from pcbatch.runtime.tasks.sizes import Sizes
from pcbatch.runtime.vm.block_body import Values
from pcbatch.runtime.vm.raw_result import RawResult, debug_checks
from pcbatch.runtime.vm.status import Status

EACH = 32  # tasks for each device, from which on they are dealt out
FEW = 8  # examples for each device, below which their tasks are dealt out

Placing = Callable[[Mapping[str, Any], LaneSharding], ShardedArguments]
Gather = Callable[[RawResult, LaneSharding], RawResult]


@dataclass(eq=False)
class DeviceTasks:
    """A task program on several devices.

    Attributes:
        tasks: the program.
        over: the devices.
        place: puts the arguments of a call on devices, each its part.
        gather: puts the results of all devices in the order of the examples.
    """

    tasks: TaskExecutable
    over: Any
    place: Placing
    gather: Gather
    _jitted: dict[Any, Any] = field(default_factory=dict)
    _sizes: dict[Any, Sizes] = field(default_factory=dict)  # of the last run, by way and number of examples
    _kept: Kept = field(default_factory=Kept)

    def run(self, args: Mapping[str, Any], lanes: int) -> Outcome:
        """Run all examples to their end, as far as they have one; arguments as in `TaskExecutable.run`."""
        sharding = LaneSharding(self.over, lanes)
        if lanes < FEW * sharding.devices and not sharding.blocks:
            return self._run_parts(args, sharding)
        return self._run_dealt(args, sharding)

    # Examples dealt out

    def _run_dealt(self, args: Mapping[str, Any], sharding: LaneSharding) -> Outcome:
        machines = _EachMachine(self, sharding, self.place(args, sharding))
        outcome, now = self._kept.run(machines, key=sharding)
        if now is not None:
            self._sizes["dealt", sharding] = now
        return outcome

    # The tasks of few examples dealt out

    def _run_parts(self, args: Mapping[str, Any], sharding: LaneSharding) -> Outcome:
        lanes, first = sharding.inputs, sharding.mesh.devices.flat[0]
        now, made = self.begins_with("parts", sharding, lanes), 0
        everywhere = NamedSharding(sharding.mesh, partition_spec())
        numbers = sharding.placed(ShardedArguments({"": np.arange(sharding.devices, dtype=np.int32)}, {}, None, None))
        here, there = (jax.device_put(dict(args), where) for where in (first, everywhere))
        while True:
            s, way = self.jitted(_first_part, sharding, now)(here)
            made += int(way.raw.trips)
            while bool(way.enough):
                copies = jax.device_put(s, everywhere)
                parts, ended, trips = self.jitted(_each_part, sharding, now)(numbers.mapped[""], copies, there)
                made += int(np.sum(trips))
                if not np.all(np.asarray(ended)):
                    break
                s, way = self.jitted(_next_part, sharding, now)(s, sharding.fetched(parts), here)
                made += int(way.raw.trips)
            raw = replace(way.raw, trips=jnp.int32(made))
            if bool(way.ended):
                self._sizes["parts", sharding] = now
                return Outcome(raw, np.asarray(way.unfinished))
            # From the start: what devices have done, of which one had no room, does not fit together.
            roomier = replace(now.larger(pool_is_empty=True), room=now.larger(pool_is_empty=False).room)
            if bool(way.failed) or not self.tasks.may_have(roomier, lanes):
                return Outcome(raw, np.ones(lanes, bool))
            now = roomier

    # For both

    def begins_with(self, way: str, sharding: LaneSharding, lanes: int) -> Sizes:
        """Return the sizes with which the next run goes that way, for so many examples on a device."""
        return self._sizes.get((way, sharding)) or self.tasks.chosen(lanes)

    def jitted(self, function: Any, sharding: LaneSharding, *sizes: Sizes) -> Any:
        """Return the compiled form of a function of this module, for machines of these sizes."""
        key = (function, sharding, lowering_platform(), sizes)
        if key not in self._jitted:
            options = self.tasks.xla_options(sizes[0])
            donated = (0,) if function is _dealt and not debug_checks() else ()
            bound = partial(function, self.tasks, sharding, *sizes)
            self._jitted.setdefault(key, jax.jit(bound, donate_argnums=donated, compiler_options=options))
        return self._jitted[key]


# The programs of devices that have examples each


def _empty(tasks: TaskExecutable, sharding: LaneSharding, now: Sizes) -> Values:
    def body(_: Any, __: Any) -> Values:
        return tasks.empty(now)

    out: Values = sharding.run(body, (), ())
    return out


def _grown(tasks: TaskExecutable, sharding: LaneSharding, old: Sizes, new: Sizes, s: Values) -> Values:
    out: Values = sharding.run(lambda s, _: tasks.grown(old, new, s), s, ())
    return out


@dataclass(frozen=True, slots=True)
class _EachMachine:
    """A machine on each device, see `growing.Machines`."""

    runs: DeviceTasks
    sharding: LaneSharding
    given: ShardedArguments

    def begins_with(self) -> Sizes:
        return self.runs.begins_with("dealt", self.sharding, self.sharding.each)

    def empty(self, now: Sizes) -> Values:
        out: Values = self.runs.jitted(_empty, self.sharding, now)()
        return out

    def advance(self, now: Sizes, s: Values, begins: bool) -> Stretch:
        own, program = self.given.without_common(), self.runs.jitted(_dealt, self.sharding, now)
        out: Stretch = program(s, own, self.given.common, np.bool_(begins))
        raw = self.runs.gather(out.raw, self.sharding)
        return out._replace(raw=raw, unfinished=np.asarray(raw.status) != 0)

    def grown(self, now: Sizes, larger: Sizes, s: Values) -> Values:
        out: Values = self.runs.jitted(_grown, self.sharding, now, larger)(s)
        return out

    def may_have(self, larger: Sizes) -> bool:
        return self.runs.tasks.may_have(larger, self.sharding.each)


def _dealt(
    tasks: TaskExecutable,
    sharding: LaneSharding,
    now: Sizes,
    s: Values,
    own: ShardedArguments,
    common: Mapping[str, Any],
    begins: jax.Array,
) -> Stretch:
    """The results tell by their statuses which examples have none, so that these are gathered together."""

    def body(dealt: tuple[Values, ShardedArguments], all_: tuple[Mapping[str, Any], jax.Array]) -> Stretch:
        (s, own), (common, begins) = dealt, all_
        out = tasks.advance(now, s, {**own.mapped, **common}, begins, end=own.end)
        status = jnp.where(out.unfinished, int(Status.RUNNING), out.raw.status)
        return out._replace(raw=replace(out.raw, status=status))

    out: Stretch = sharding.run(body, (s, own), (common, begins))
    return out


# The programs of devices that have parts of all examples


class PartState(NamedTuple):
    """The state of a run between two parts.

    Attributes:
        raw: the results, and the trips since the part before.
        enough: bool[]: whether there are enough tasks for all devices.
        ended: bool[]: whether none is left.
        failed: bool[]: whether an example has failed.
        unfinished: bool[examples]: those that have no result.
    """

    raw: RawResult
    enough: jax.Array
    ended: jax.Array
    failed: jax.Array
    unfinished: jax.Array


def _first_part(
    tasks: TaskExecutable, sharding: LaneSharding, now: Sizes, args: Mapping[str, Any]
) -> tuple[Values, PartState]:
    prepared = tasks.plan(now.lanes == 1)
    _, per_example = tasks.stored(args, now.lanes)
    return _go_on(tasks, sharding, now, state.begin(prepared, now, tasks.empty(now), per_example), args)


def _next_part(
    tasks: TaskExecutable, sharding: LaneSharding, now: Sizes, s: Values, parts: Values, args: Mapping[str, Any]
) -> tuple[Values, PartState]:
    return _go_on(tasks, sharding, now, spread.together(tasks.plan(now.lanes == 1), now, s, parts), args)


def _go_on(
    tasks: TaskExecutable, sharding: LaneSharding, now: Sizes, s: Values, args: Mapping[str, Any]
) -> tuple[Values, PartState]:
    """Run on one device until there are tasks for all, or to the end."""
    prepared = tasks.plan(now.lanes == 1)
    machine = tasks.machine(now, tasks.stored(args, now.lanes)[0])

    def enough(s: Values) -> jax.Array:
        return trips.waiting(s) >= EACH * sharding.devices

    trips = tasks.trips(machine, enough)
    s, made = trips.run(s)
    left = trips.waiting(s) > 0
    failed, unfinished = tasks.unfinished(prepared, now, s, left)
    raw = tasks.result(prepared, now, s, made)
    return s, PartState(raw, left & enough(s), ~left, jnp.any(failed), unfinished)


def _each_part(
    tasks: TaskExecutable, sharding: LaneSharding, now: Sizes, numbers: Any, s: Values, args: Mapping[str, Any]
) -> tuple[Values, jax.Array, jax.Array]:
    """The state of each device after its part, whether it has come to its end, and its trips."""

    def body(number: jax.Array, all_: tuple[Values, Mapping[str, Any]]) -> tuple[Values, jax.Array, jax.Array]:
        s, args = all_
        machine = tasks.machine(now, tasks.stored(args, now.lanes)[0])
        trips = tasks.trips(machine, frees=False)  # frames that were open before are held by all devices
        s, made = trips.run(spread.part(machine.plan, s, number, sharding.devices))
        return s, trips.waiting(s) == 0, made

    out: tuple[Values, jax.Array, jax.Array] = sharding.run(body, numbers, (s, args))
    return out
