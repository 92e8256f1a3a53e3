"""Runs of a task program on the host's side: one compiled program for each number of examples."""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property, partial
from typing import Any, Protocol

import jax
import jax.numpy as jnp
import numpy as np

from pcbatch.ir.tasks import TaskProgram
from pcbatch.ir.types import ArrayType
from pcbatch.lowering.typing.jax_types import as_result, from_storage, storage_type, to_storage
from pcbatch.runtime.costs import xla_options
from pcbatch.runtime.learned.policy import Learned
from pcbatch.runtime.lowering_platform import lowering_platform
from pcbatch.runtime.tasks import pool, sizes, state, task_plan
from pcbatch.runtime.tasks.growing import Kept, Outcome, Stretch, lacks_frames
from pcbatch.runtime.tasks.reading import Recorder, TaskMachine
from pcbatch.runtime.tasks.sizes import Sizes
from pcbatch.runtime.tasks.task_plan import TaskPlan
from pcbatch.runtime.tasks.trip import PolicyTrips, Trips
from pcbatch.runtime.tasks.visit import FAILED
from pcbatch.runtime.vm import wide_counters
from pcbatch.runtime.vm.block_body import Values, evaluate
from pcbatch.runtime.vm.layout import PER_BLOCK
from pcbatch.runtime.vm.raw_result import RawResult, debug_checks
from pcbatch.runtime.vm.run_once import run_once

GROWN = 8
BEGINNING = 2**26  # bytes of all arrays, above which a machine begins with fewer frames and narrower visits


@dataclass(frozen=True, slots=True)
class TaskOptions:
    """The sizes of a machine of lists; None: chosen by the number of examples.

    Attributes:
        width: the most records of one visit.
        frames: frames of the pool, to begin with.
        reserve: frames that are left to tasks that go on one by one, when nothing else can run.
        room: records of a list of which frames do not bound the length, to begin with.
        max_bytes: how large all arrays together may become, if that is more than `GROWN` times what they were at first.
        limit: how large they may be in any case; None: as large as that.
        stats: whether visits are counted.
        max_steps: the blocks of lanes after which an example is left to lanes; None: as many as it takes.
        policy: the learned schedule; None: the order of the machine itself.
        for_one: whether one example is to run so.
        most: the examples up to which they are to run so; None: any number.
    """

    width: int | None = None
    frames: int | None = None
    reserve: int | None = None
    room: int | None = None
    max_bytes: int = 2**28
    limit: int | None = None
    stats: bool = False
    max_steps: int | None = None
    policy: Learned | None = None
    for_one: bool = True
    most: int | None = None


@dataclass(eq=False)
class TaskExecutable:
    """A task program with the machine that runs it.

    The arrays of a run are kept for the next one with as many examples, which takes them over.
    """

    program: TaskProgram
    options: TaskOptions = TaskOptions()
    _sizes: dict[int, Sizes] = field(default_factory=dict)  # of the last run, by number of examples
    _chosen: dict[tuple[int, bool], Sizes] = field(default_factory=dict)  # by number of examples, and whether traced
    _in_bytes: dict[Sizes, int] = field(default_factory=dict)
    _jitted: dict[Any, Any] = field(default_factory=dict)
    _kept: Kept = field(default_factory=Kept)

    def __post_init__(self) -> None:
        self.plan(single=False)  # refuses what it cannot run

    @cached_property
    def _several(self) -> TaskPlan:
        return task_plan.make(self.program, False, self.options.max_steps)

    @cached_property
    def _single(self) -> TaskPlan:
        return task_plan.make(self.program, True, self.options.max_steps)

    def plan(self, single: bool) -> TaskPlan:
        """Return the plan for one example, or for several."""
        return self._single if single else self._several

    def run(self, args: Mapping[str, Any], lanes: int) -> Outcome:
        """Run all examples to their end, as far as they have one. Outside traces.

        Args:
            args: The arguments by parameter: [lanes, ...], or unbatched if all examples share them.
            lanes: The number of examples.
        """
        outcome, now = self._kept.run(_OneMachine(self, args, lanes))
        if now is not None:
            self.remember(now)
        return outcome

    def larger(self, now: Sizes, s: Values) -> Sizes | None:
        """Return the sizes with which a run goes on that is stuck; None if these were too large."""
        larger = now.larger(lacks_frames(s, True))
        return larger if self.may_have(larger, now.lanes) else None

    def run_traced(self, args: Mapping[str, Any], lanes: int) -> tuple[RawResult, jax.Array]:
        """Run inside a trace, where nothing grows.

        Returns:
            The results, and bool[examples]: those that have none.
        """
        now = self.chosen(lanes, traced=True)
        raw, _, _, unfinished = self.advance(now, self.empty(now), args, jnp.asarray(True), isolate=True)
        return raw, unfinished

    def chosen(self, lanes: int, traced: bool = False) -> Sizes:
        """Return the sizes with which the first run of so many examples begins; `traced`: of those inside traces."""
        o = self.options
        frames = sizes.TRACED_PER_EXAMPLE if traced else sizes.POOL_PER_EXAMPLE
        now = sizes.chosen(self.plan(lanes == 1), lanes, o.width, o.frames, o.reserve, o.room, frames)
        if (o.width, o.frames, o.reserve, o.room) != (None,) * 4:
            return now
        if (lanes, traced) not in self._chosen:
            while self._bytes(now) > BEGINNING and now.smaller() != now:
                now = now.smaller()
            self._chosen[lanes, traced] = now
        return self._chosen[lanes, traced]

    def begins_with(self, lanes: int) -> Sizes:
        """Return the sizes with which the next run of so many examples begins."""
        return self._sizes.get(lanes) or self.chosen(lanes)

    def remember(self, now: Sizes) -> None:
        """Let the next run of so many examples begin with these sizes."""
        self._sizes[now.lanes] = now

    def may_have(self, larger: Sizes, lanes: int) -> bool:
        """Whether the arrays of a run of so many examples may become so large."""
        size, o = self._bytes(larger), self.options
        return size <= max(o.max_bytes, GROWN * self._bytes(self.chosen(lanes))) and (
            o.limit is None or size <= o.limit
        )

    def takes(self, lanes: int) -> bool:
        """Whether so many examples are to run by tasks: as many as it pays for, and as the memory allows."""
        if lanes == 1 and not self.options.for_one or lanes > (self.options.most or lanes):
            return False
        return self.options.limit is None or self._bytes(self.chosen(lanes)) <= self.options.limit

    def lower(self, args: Mapping[str, Any], lanes: int) -> Any:
        """Return `jax.stages.Lowered` of the run of so many examples."""
        now = self.begins_with(lanes)
        s = jax.eval_shape(partial(self.empty, now))
        return self.jitted(self.advance, now).lower(s, args, np.bool_(True))

    def jitted(self, function: Any, *static: Sizes) -> Any:
        """Return the compiled form of a function of this object, for machines of these sizes."""
        key = (function.__name__, lowering_platform(), static)
        if key not in self._jitted:
            options = self.xla_options(static[0])
            bound = partial(function, *static)
            donated = (0,) if function.__name__ == "advance" and not debug_checks() else ()
            jitted = jax.jit(bound, donate_argnums=donated, compiler_options=options)
            self._jitted.setdefault(key, jitted)  # of several threads one comes first
        return self._jitted[key]

    def xla_options(self, now: Sizes) -> dict[str, Any] | None:
        """Return options for the `jax.jit` of a run with machines of these sizes."""
        return xla_options.compiler_options(self.kernel, now.width, self.in_place)

    @cached_property
    def kernel(self) -> float:
        """The size of a typical kernel, by which XLA's options are chosen."""
        return xla_options.typical_kernel(self._several.stack)

    @cached_property
    def in_place(self) -> bool:
        """Whether XLA may analyse the order of reads and writes."""
        return not xla_options.has_loops(self._several.stack)

    # Functions that are compiled

    def empty(self, now: Sizes) -> Values:
        """Return the arrays of a machine that has not run."""
        return state.empty(self.plan(now.lanes == 1), now, self.options.stats)

    def grown(self, old: Sizes, new: Sizes, s: Values) -> Values:
        """Return larger arrays, in which a run goes on."""
        return state.grown(self.plan(old.lanes == 1), old, new, s, self.options.stats)

    def _bytes(self, now: Sizes) -> int:
        """The size of all arrays together; asked for in every call."""
        if now not in self._in_bytes:
            arrays = jax.eval_shape(partial(self.empty, now))
            self._in_bytes[now] = sum(x.size * x.dtype.itemsize for x in jax.tree.leaves(arrays))
        return self._in_bytes[now]

    def advance(
        self,
        now: Sizes,
        s: Values,
        args: Mapping[str, Any],
        begins: jax.Array,
        isolate: bool | None = None,
        end: jax.Array | None = None,
    ) -> Stretch:
        """Begin a run, or go on with one, until all examples have returned or nothing has room to run.

        Args:
            now: The sizes of the arrays.
            s: The state.
            args: The arguments.
            begins: bool[]: whether the run begins.
            isolate: Whether visits read in loops of their own; None: where XLA's options make it necessary.
            end: int32[]: the number of examples that are not copies to fill up; None: all.
        """
        prepared = self.plan(now.lanes == 1)
        fixed, per_example = self.stored(args, now.lanes)
        s = run_once(begins, lambda s: state.begin(prepared, now, s, per_example, end), s)
        loop = self.trips(self.machine(now, fixed, isolate))
        s, trips = loop.run(s)
        left = loop.waiting(s) > 0
        unfinished = self.unfinished(prepared, now, s, left)[1]
        return Stretch(self.result(prepared, now, s, trips), s, left, unfinished)

    def run_recorded(
        self, now: Sizes, s: Values, args: Mapping[str, Any], recorder: Recorder, isolate: bool | None = None
    ) -> tuple[RawResult, Values, jax.Array]:
        """Run from the beginning, and record; see `advance`. What is recorded is in the state."""
        fixed, per_example = self.stored(args, now.lanes, single=False)
        s = state.begin(recorder.plan, now, s, per_example)
        isolate = not xla_options.keeps_in_place(self._several.stack) if isolate is None else isolate
        loop = self.trips(TaskMachine(recorder.plan, now, fixed, False, isolate, recorder), frees=False)
        s, trips = loop.run(s)
        left = loop.waiting(s) > 0
        failed, unfinished = self.unfinished(recorder.plan, now, s, left)
        # Frames of examples that have failed stay taken here, so that others may lack some: lanes run those as well,
        # and no larger machine is tried.
        stuck = left & ~jnp.any(failed)
        return self.result(recorder.plan, now, s, trips), s, jnp.append(stuck, unfinished)

    def trips(
        self, machine: TaskMachine, stop: Callable[[Values], jax.Array] | None = None, frees: bool = True
    ) -> Trips:
        """Return the trips of a machine, by the learned schedule if there is one; `stop` and `frees`: see `Trips`."""
        policy = self.options.policy
        return Trips(machine, stop, frees) if policy is None else PolicyTrips(machine, stop, frees, policy=policy)

    def machine(self, now: Sizes, fixed: Values, isolate: bool | None = None) -> TaskMachine:
        """Return the machine of these sizes; `fixed`: what `stored` gives first; `isolate`: see `advance`."""
        isolate = not xla_options.keeps_in_place(self._several.stack) if isolate is None else isolate
        return TaskMachine(self.plan(now.lanes == 1), now, fixed, self.options.stats, isolate)

    def unfinished(self, prepared: TaskPlan, now: Sizes, s: Values, left: jax.Array) -> tuple[jax.Array, jax.Array]:
        """Return bool[examples] twice: those of which a task has failed, and those that have no result.

        `left`: bool[]: whether records are left.
        """
        failed = s[FAILED] if prepared.fails else jnp.zeros(now.lanes, bool)
        return failed, failed | (s[pool.NEED][: now.lanes] != 0 if prepared.framed else left)

    def stored(
        self,
        args: Mapping[str, Any],
        lanes: int,
        single: bool | None = None,
        around: Callable[[Any], Any] = lambda f: f,
    ) -> tuple[Values, Values]:
        """Return the values that blocks read without records, and the arguments of each example, in storage form.

        `single`: whether constants have one value, as in the plan for one example; None: if there is one. `around`:
        wraps the functions of the primitives that compute shared values.
        """
        program, single = self.program, lanes == 1 if single is None else single
        stored = {v: to_storage(value, self._type(v)) for v, value in args.items()}
        shared = {v: from_storage(stored[v], self._type(v)) for v in stored if v in program.shared}
        for op in program.prologue:
            evaluate(op, shared, around)
        fixed = {v: to_storage(value, self._type(v)) for v, value in shared.items()}
        mapped = {v: self._mapped(v, value, lanes) for v, value in stored.items() if v not in fixed}
        for v in program.constants:
            fixed[v] = mapped[v][0] if single else mapped[v]
        return fixed, mapped

    def _mapped(self, name: str, value: Any, lanes: int) -> Any:
        shape = storage_type(self._type(name)).shape
        return jnp.broadcast_to(value, (lanes, *shape)) if value.ndim == len(shape) else value

    def result(self, prepared: TaskPlan, now: Sizes, s: Values, trips: jax.Array) -> RawResult:
        """Return the results of all examples."""
        keys = prepared.entry.results.keys
        values = tuple(
            as_result(pool.rows(s[key], prepared.entry.results.slots)[: now.lanes, 0], self._type(v))
            for v, key in zip(self.program.results, keys, strict=True)
        )
        ended = jnp.zeros(now.lanes, jnp.int32)
        counts = tuple(s[key] for key in PER_BLOCK) if self.options.stats else ()
        exit_ = jnp.full(now.lanes, len(prepared.blocks), jnp.int32)
        return RawResult(values, ended, trips, counts, exit_, None, None, {}, 0)

    def _type(self, name: str) -> ArrayType:
        type_ = self.program.types[name]
        assert type_ is not None, name
        return type_


@dataclass(frozen=True, slots=True)
class _OneMachine:
    """The machine of a run on one device, see `growing.Machines`."""

    tasks: TaskExecutable
    args: Mapping[str, Any]
    lanes: int

    def begins_with(self) -> Sizes:
        return self.tasks.begins_with(self.lanes)

    def empty(self, now: Sizes) -> Values:
        return state.on_device(self.tasks.plan(self.lanes == 1), now, self.tasks.options.stats)

    def advance(self, now: Sizes, s: Values, begins: bool) -> Stretch:
        out: Stretch = self.tasks.jitted(self.tasks.advance, now)(s, self.args, np.bool_(begins))
        return out

    def grown(self, now: Sizes, larger: Sizes, s: Values) -> Values:
        out: Values = self.tasks.jitted(self.tasks.grown, now, larger)(s)
        return out

    def may_have(self, larger: Sizes) -> bool:
        return self.tasks.may_have(larger, self.lanes)


# Runs of many examples by tasks, some thousand at a time, so that pools stay small.

CHUNK = 4096  # examples; more side by side gain nothing, and each needs frames


class Runs(Protocol):
    """A program of tasks on some devices."""

    def run(self, args: Mapping[str, Any], lanes: int) -> Outcome:
        """Run all examples to their end, as far as they have one."""


def run_chunks(tasks: Runs, args: Mapping[str, Any], mapped: frozenset[str], lanes: int, chunk: int = CHUNK) -> Outcome:
    """Run any number of examples by tasks, a chunk after the other.

    Args:
        tasks: The program.
        args: The arguments by parameter.
        mapped: Those with a value for each example.
        lanes: The number of examples.
        chunk: The most that run at once.
    """
    if lanes <= chunk:
        return tasks.run(args, lanes)
    outcomes = []
    for first in range(0, lanes, chunk):
        # The last example fills up, so that one program serves all chunks.
        rows = np.minimum(np.arange(first, first + chunk, dtype=np.int32), lanes - 1)
        outcomes.append(tasks.run({v: jnp.take(x, rows, axis=0) if v in mapped else x for v, x in args.items()}, chunk))
    return _joined(outcomes, lanes)


def _joined(outcomes: list[Outcome], lanes: int) -> Outcome:
    raws = [outcome.raw for outcome in outcomes]
    values = tuple(jnp.concatenate(parts)[:lanes] for parts in zip(*(raw.values for raw in raws), strict=True))
    status, pc = (jnp.concatenate([getattr(raw, name) for raw in raws])[:lanes] for name in ("status", "pc"))
    trips = sum((raw.trips for raw in raws[1:]), raws[0].trips)
    unfinished = np.concatenate([outcome.unfinished for outcome in outcomes])[:lanes]
    counts = tuple(
        functools.reduce(wide_counters.plus, each) for each in zip(*(raw.counts for raw in raws), strict=True)
    )
    return Outcome(replace(raws[0], values=values, status=status, pc=pc, trips=trips, counts=counts), unfinished)
