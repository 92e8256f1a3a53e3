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

from pcbatch.runtime.costs import xla_options
from pcbatch.runtime.sharding.lane_sharding import LaneSharding, ShardedArguments, partition_spec
from pcbatch.runtime.tasks import pool, spread, state
from pcbatch.runtime.tasks.executable import Outcome, TaskExecutable
from pcbatch.runtime.tasks.sizes import Sizes
from pcbatch.runtime.vm.block_body import Values
from pcbatch.runtime.vm.raw_result import RawResult

EACH = 32  # tasks for each device, from which on they are dealt out
FEW = 8  # examples for each device, below which their tasks are dealt out

Place = Callable[[Mapping[str, Any], LaneSharding], ShardedArguments]
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
    place: Place
    gather: Gather
    _jitted: dict[Any, Any] = field(default_factory=dict)
    _sizes: dict[Any, Sizes] = field(default_factory=dict)  # of the last run, by way and number of examples

    def run(self, args: Mapping[str, Any], lanes: int) -> Outcome:
        """Run all examples to their end, as far as they have one; arguments as in `TaskExecutable.run`."""
        sharding = LaneSharding(self.over, lanes)
        if lanes < FEW * sharding.devices and not sharding.blocks:
            return self._run_parts(args, sharding)
        return self._run_dealt(args, sharding)

    # Examples dealt out

    def _run_dealt(self, args: Mapping[str, Any], sharding: LaneSharding) -> Outcome:
        key = "dealt", sharding
        now, given, begins = self._sizes.get(key) or self.tasks.chosen(sharding.each), self.place(args, sharding), True
        own = given.without_common()
        s = self._jit(_empty, sharding, now)()
        while True:
            out = self._jit(_dealt, sharding, now)(s, own, given.common, np.bool_(begins))
            raw, s = self.gather(out.raw, sharding), out.state
            held, stuck = _in_order(out.unfinished, sharding), np.asarray(out.stuck)
            if not np.any(stuck):
                break
            larger = now.larger(pool_is_empty=bool(np.any(np.asarray(out.frames) & stuck)))
            if not self.tasks.may_have(larger, sharding.each):
                return Outcome(raw, held)
            s, now, begins = self._jit(_grown, sharding, now, larger)(s), larger, False
        self._sizes[key] = now
        return Outcome(raw, held)

    # The tasks of few examples dealt out

    def _run_parts(self, args: Mapping[str, Any], sharding: LaneSharding) -> Outcome:
        lanes, first = sharding.inputs, sharding.mesh.devices.flat[0]
        now = self._sizes.get(("parts", sharding)) or self.tasks.chosen(lanes)
        everywhere = NamedSharding(sharding.mesh, partition_spec())
        numbers = sharding.placed(ShardedArguments({"": np.arange(sharding.devices, dtype=np.int32)}, {}, None, None))
        here, there = (jax.device_put(dict(args), where) for where in (first, everywhere))
        while True:
            s, way = self._jit(_first_part, sharding, now)(here)
            while bool(way.enough):
                copies = jax.device_put(s, everywhere)
                parts, ended = self._jit(_each_part, sharding, now)(numbers.mapped[""], copies, there)
                if not np.all(np.asarray(ended)):
                    break
                s, way = self._jit(_next_part, sharding, now)(s, sharding.fetched(parts), here)
            if bool(way.ended):
                self._sizes["parts", sharding] = now
                return Outcome(way.raw, np.asarray(way.unfinished))
            # From the start: what devices have done, of which one had no room, does not fit together.
            roomier = replace(now.larger(pool_is_empty=True), room=now.larger(pool_is_empty=False).room)
            if bool(way.failed) or not self.tasks.may_have(roomier, lanes):
                return Outcome(way.raw, np.ones(lanes, bool))
            now = roomier

    def _jit(self, function: Any, sharding: LaneSharding, *sizes: Sizes) -> Any:
        key = (function, sharding, sizes)
        if key not in self._jitted:
            options = xla_options.compiler_options(self.tasks.kernel, sizes[0].width)
            self._jitted[key] = jax.jit(partial(function, self.tasks, sharding, *sizes), compiler_options=options)
        return self._jitted[key]


def _in_order(each: Any, sharding: LaneSharding) -> np.ndarray:
    """bool[examples] of bool[devices, each]."""
    rows = np.asarray(each)
    rows = rows.reshape(-1) if sharding.blocks else rows.T.reshape(-1)
    return rows[: sharding.inputs]


# The programs of devices that have examples each


def _empty(tasks: TaskExecutable, sharding: LaneSharding, now: Sizes) -> Values:
    def body(_: Any, __: Any) -> Values:
        return tasks.empty(now)

    out: Values = sharding.run(body, (), ())
    return out


def _grown(tasks: TaskExecutable, sharding: LaneSharding, old: Sizes, new: Sizes, s: Values) -> Values:
    out: Values = sharding.run(lambda s, _: tasks.grown(old, new, s), s, ())
    return out


class Run(NamedTuple):
    """What the run of one device has left: its results, its state, and bool[]: whether it needs more room, whether that
    is for frames; bool[examples]: which have no result."""

    raw: RawResult
    state: Values
    stuck: jax.Array
    frames: jax.Array
    unfinished: jax.Array


def _dealt(
    tasks: TaskExecutable,
    sharding: LaneSharding,
    now: Sizes,
    s: Values,
    own: ShardedArguments,
    common: Mapping[str, Any],
    begins: jax.Array,
) -> Run:
    def body(dealt: tuple[Values, ShardedArguments], all_: tuple[Mapping[str, Any], jax.Array]) -> Run:
        (s, own), (common, begins) = dealt, all_
        raw, s, stuck, unfinished = tasks.advance(now, s, {**own.mapped, **common}, begins, end=own.end)
        frames = s[pool.FREE_COUNT] == 0 if pool.FREE_COUNT in s else jnp.zeros((), bool)
        return Run(raw, s, stuck, frames, unfinished)

    out: Run = sharding.run(body, (s, own), (common, begins))
    return out


# The programs of devices that have parts of all examples


class Way(NamedTuple):
    """How far a run is: its results; bool[]: whether there are enough tasks for all devices, whether it is at its end,
    whether a task has failed; bool[examples]: those that have no result."""

    raw: RawResult
    enough: jax.Array
    ended: jax.Array
    failed: jax.Array
    unfinished: jax.Array


def _first_part(
    tasks: TaskExecutable, sharding: LaneSharding, now: Sizes, args: Mapping[str, Any]
) -> tuple[Values, Way]:
    prepared = tasks.plan(now.lanes == 1)
    _, per_example = tasks.stored(args, now.lanes)
    return _go_on(tasks, sharding, now, state.begin(prepared, now, tasks.empty(now), per_example), args)


def _next_part(
    tasks: TaskExecutable, sharding: LaneSharding, now: Sizes, s: Values, parts: Values, args: Mapping[str, Any]
) -> tuple[Values, Way]:
    return _go_on(tasks, sharding, now, spread.together(tasks.plan(now.lanes == 1), now, s, parts), args)


def _go_on(
    tasks: TaskExecutable, sharding: LaneSharding, now: Sizes, s: Values, args: Mapping[str, Any]
) -> tuple[Values, Way]:
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
    return s, Way(raw, left & enough(s), ~left, jnp.any(failed), unfinished)


def _each_part(
    tasks: TaskExecutable, sharding: LaneSharding, now: Sizes, numbers: Any, s: Values, args: Mapping[str, Any]
) -> tuple[Values, jax.Array]:
    def body(number: jax.Array, all_: tuple[Values, Mapping[str, Any]]) -> tuple[Values, jax.Array]:
        s, args = all_
        machine = tasks.machine(now, tasks.stored(args, now.lanes)[0])
        trips = tasks.trips(machine, frees=False)  # frames that were open before are held by all devices
        s, _ = trips.run(spread.part(machine.plan, s, number, sharding.devices))
        return s, trips.waiting(s) == 0

    out: tuple[Values, jax.Array] = sharding.run(body, numbers, (s, args))
    return out
