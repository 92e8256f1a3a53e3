"""The values of a call on their way to devices and back.

Of its arguments mapped and common ones are apart, and keys are what they are. Raw results are read from the state of a
machine, and from several devices' machines.
"""

from __future__ import annotations

import functools
from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING, Any

import jax
import jax.numpy as jnp

from pcbatch.ir.stack import StackProgram
from pcbatch.lowering.typing.jax_types import from_storage, is_key, to_storage
from pcbatch.runtime.execute.program_cache import device_program
from pcbatch.runtime.execute.refill import Queue
from pcbatch.runtime.sharding.lane_sharding import LaneSharding, ShardedArguments
from pcbatch.runtime.vm import timeline, wide_counters
from pcbatch.runtime.vm.layout import reg
from pcbatch.runtime.vm.machine import Machine, State, or_failed
from pcbatch.runtime.vm.raw_result import RawResult
from pcbatch.runtime.vm.status import Status

if TYPE_CHECKING:
    from pcbatch.runtime.execute.executor import PcExecutable


@dataclass(frozen=True, slots=True)
class ArgumentSharding:
    """Splits the arguments of a program's calls and shards them.

    Attributes:
        program: its variables have the types of arguments for one lane.
        prints: whether lanes print, and so need to know the numbers of their inputs.
    """

    program: StackProgram
    prints: bool

    def split(self, args: Mapping[str, Any]) -> tuple[dict[str, Any], dict[str, Any]]:
        """Return the arguments with a value per input, and those that all inputs share."""
        mapped = {v for v, value in args.items() if self.is_mapped(v, value)}
        return {v: args[v] for v in args if v in mapped}, {v: args[v] for v in args if v not in mapped}

    def is_mapped(self, name: str, value: Any) -> bool:
        """Whether the value of a parameter has an axis of lanes."""
        return jnp.ndim(value) > len(self._type(name).shape)

    def mapped(self, args: Mapping[str, Any]) -> tuple[bool, ...]:
        """Return which parameters have a value of each lane, in order."""
        return tuple([self.is_mapped(v, args[v]) for v in self.program.params])

    def sharded(self, args: Mapping[str, Any], sharding: LaneSharding) -> ShardedArguments:
        """Shard the arguments of a call, in a trace or out of one."""
        return sharding.dealt(*self.split(args), self.prints)

    def natural(self, args: Mapping[str, Any]) -> dict[str, Any]:
        """Return arguments with typed keys, of which some may come as their raw words."""
        return {v: self.as_leaf(v, x) for v, x in args.items()}

    def as_leaf(self, name: str, value: Any) -> Any:
        """Return the value of a variable; a key that comes as its raw words becomes a typed key."""
        type_ = self._type(name)
        raw = is_key(type_) and not jnp.issubdtype(value.dtype, jax.dtypes.prng_key)
        return from_storage(value, type_) if raw else value

    def _type(self, name: str) -> Any:
        return self.program.vars[name].type


# Raw results read from the state of a machine, and from several devices' machines.


@dataclass(frozen=True, slots=True)
class ResultReader:
    """Reads what runs of one machine have left, on one device.

    Attributes:
        program: the program of the machine.
        machine: the machine that runs.
        timed: whether the machine keeps statistics over time.
    """

    program: StackProgram
    machine: Machine
    timed: bool

    def of_state(self, state: State, depth: int, masked: bool = True) -> RawResult:
        """The raw result of a run of all lanes at once, with stacks of this depth; `masked`: with `masked` values."""
        carry = state.carry
        back = None if self.machine.layout.frames is None else self.machine.back(carry)
        rows = {key: self.machine.layout.rows(key, x) for key, x in carry.items()}
        return self._result(rows, back, state, depth, masked)

    def of_queue(self, queue: Queue, depth: int) -> RawResult:
        """The raw result of a queue, by slot."""
        return self._result(queue.out, queue.out.get("back"), queue.state, depth)

    def _result(self, rows: dict[str, Any], back: Any, state: State, depth: int, masked: bool = True) -> RawResult:
        """`rows`: by state key, what each input has left, [inputs, ...]."""
        lasting = {"pc", "depth", *(map(reg, self.program.results) if masked else ())}
        left = {key: x for key, x in rows.items() if key in lasting}
        stored, status, pc, depths = self.machine.lane_by_lane(partial(self._ends, masked), left)
        stored = stored if masked else tuple(rows[reg(v)] for v in self.program.results)
        values = self.machine.leaves(stored)
        counts = tuple(state.carry[key] for key in self.machine.counts)
        line = (*(state.carry[key] for key in timeline.KEYS), state.trips) if self.timed else ()
        shown = self.machine.shown(rows, state.shared)
        return RawResult(values, status, state.trips, counts, pc, depths, back, shown, depth, line)

    def masked(self, values: tuple[Any, ...], status: Any) -> tuple[Any, ...]:
        """Return the leaves of the result with NaN, or the smallest number of their dtype, for lanes that failed."""
        types: list[Any] = [self.program.vars[v].type for v in self.program.results]
        stored = (to_storage(x, type_) for x, type_ in zip(values, types, strict=True))
        return self.machine.leaves(tuple(or_failed(x, status) for x in stored))

    def _ends(self, masked: bool, rows: dict[str, Any]) -> tuple[tuple[Any, ...], Any, Any, Any]:
        """Return the values, statuses, program counters and depths of lanes."""
        values, status = self.machine.results(rows) if masked else ((), self.machine.statuses(rows))
        depths = rows.get("depth")
        if depths is not None:  # of a lane that had no room: without the call that it could not make
            depths = depths - (status == int(Status.STACK_FULL)).astype(depths.dtype)
        return values, status, rows["pc"].astype(jnp.int32), depths

    def structure(self, depth: int) -> Any:
        """The tree of a raw result."""
        layout = self.machine.layout
        calls = None if layout.frames is None else 0
        values, counts = tuple(self.program.results), tuple(self.machine.counts)
        shown = dict.fromkeys(layout.shown, 0)
        return jax.tree.structure(RawResult(values, 0, 0, counts, 0, calls, calls, shown, depth))


def collected(out: RawResult, sharding: LaneSharding) -> RawResult:
    """The raw results of all devices in the order of the inputs; trips and counts are summed."""
    if sharding.over is None:
        return out
    trips, counts = totals(out.trips, out.counts, sharding)
    return replace(in_order(out, sharding), trips=trips, counts=counts)


def in_order(out: RawResult, sharding: LaneSharding) -> RawResult:
    """The results of lanes in the order of the inputs; trips and counts as they are."""
    return out.of_lanes(sharding.collect)


def totals(trips: Any, counts: tuple[Any, ...], sharding: LaneSharding) -> tuple[Any, Any]:
    """Trips and counts, summed over devices."""
    plus = partial(functools.reduce, wide_counters.plus)
    return sharding.total(jnp.sum, trips), tuple(sharding.total(plus, count) for count in counts)


# Onto devices and back, outside traces.


def placed(executable: PcExecutable, args: Mapping[str, Any], sharding: LaneSharding) -> ShardedArguments:
    """Shard the arguments of a call onto their devices."""
    if sharding.over is None:
        return executable.arguments.sharded(args, sharding)
    mapped, common = executable.arguments.split(args)
    # Each by itself, where it is: arguments may be on several devices.
    deal = executable.jitted(_deal, sharding.each)
    mapped = {v: deal(sharding.laid(x), spread=sharding) for v, x in mapped.items()}
    names = sharding.dealt({}, {}, executable.prints).names
    return sharding.placed(ShardedArguments(mapped, common, sharding.ends(sharding.inputs), names))


def gathered(executable: PcExecutable, out: RawResult, sharding: LaneSharding) -> RawResult:
    """The raw results of all devices in the order of the inputs."""
    if sharding.over is None:
        return out
    if not sharding.blocks:
        of_all: RawResult = executable.jitted(_collect, sharding.each)(sharding.fetched(out), spread=sharding)
        return of_all
    # The results of lanes stay where they are.
    rows: RawResult = executable.jitted(_rows, sharding.each)(replace(out, trips=None, counts=()), spread=sharding)
    sums = sharding.fetched((out.trips, out.counts))
    trips, counts = executable.jitted(_totals, sharding.each)(sums, spread=sharding)
    return replace(rows, trips=trips, counts=counts)


@device_program("spread")
def _deal(executable: PcExecutable, array: Any, *, spread: LaneSharding) -> Any:
    return spread.deal(array)


@device_program("spread")
def _collect(executable: PcExecutable, out: RawResult, *, spread: LaneSharding) -> RawResult:
    return collected(out, spread)


@device_program("spread")
def _rows(executable: PcExecutable, out: RawResult, *, spread: LaneSharding) -> RawResult:
    return in_order(out, spread)


@device_program("spread")
def _totals(executable: PcExecutable, each: tuple[Any, Any], *, spread: LaneSharding) -> tuple[Any, Any]:
    return totals(*each, spread)
