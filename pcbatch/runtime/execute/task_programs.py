"""The programs of a monitored run by tasks, and the arrays of it between two of them."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from typing import TYPE_CHECKING, Any, NamedTuple

import jax
import jax.numpy as jnp

from pcbatch.ir.types import ArrayType
from pcbatch.lowering.typing.jax_types import from_storage, storage_type, to_storage
from pcbatch.runtime.execute.program_cache import device_program
from pcbatch.runtime.tasks import TaskExecutable, pool, state
from pcbatch.runtime.tasks.sizes import Sizes
from pcbatch.runtime.vm import wide_counters
from pcbatch.runtime.vm.block_body import Values
from pcbatch.runtime.vm.layout import PER_BLOCK
from pcbatch.runtime.vm.run_once import run_once

if TYPE_CHECKING:
    from pcbatch.runtime.execute.executor import PcExecutable

I32 = jnp.int32


class TaskBuffers(NamedTuple):
    """The arrays of a run by tasks. The machine's are donated, and those of lanes.

    Attributes:
        args: the arguments by parameter of the program for lanes, in storage form.
        machine: the machine of lists, for the chunk of examples that runs; empty between two chunks.
        values: the results of chunks that have ended, [inputs, ...] each, in storage form.
        todo: bool[inputs]: the examples of chunks that have ended which tasks have not finished.
        counts: the statistics of chunks that have ended.
        lanes: the state of the run by lanes of those examples, once it has begun.
    """

    args: dict[str, Any]
    machine: Values
    values: tuple[Any, ...]
    todo: jax.Array
    counts: tuple[Any, ...]
    lanes: Any


class TaskProgress(NamedTuple):
    """The status of a machine of lists after a program.

    Attributes:
        trips: int32[]: trips that the program has made.
        left: bool[]: whether records are left.
        stuck: bool[]: whether there is no room to run any of them.
        no_frames: bool[]: whether it is for want of frames.
        open: bool[examples]: those that have no result.
    """

    trips: jax.Array
    left: jax.Array
    stuck: jax.Array
    no_frames: jax.Array
    open: jax.Array


class ExampleRange(NamedTuple):
    """The examples that a machine of lists runs.

    Attributes:
        first: int32[]: the number of the first one.
        size: int32[]: how many there are; the machine may have room for more.
    """

    first: Any
    size: Any


def stored_args(executable: PcExecutable, args: Mapping[str, Any]) -> dict[str, Any]:
    """Return the arguments of a call in storage form, in buffers of their own."""
    return {v: jnp.copy(to_storage(x, _type(executable, v))) for v, x in args.items()}


def is_mapped(executable: PcExecutable, name: str, stored: Any) -> bool:
    """Whether an argument in storage form has a value per example."""
    return bool(stored.ndim > len(storage_type(_type(executable, name)).shape))


@device_program("now", donate=(0,))
def run_tasks(
    executable: PcExecutable,
    s: Values,
    args: Mapping[str, Any],
    chunk: ExampleRange,
    begins: jax.Array,
    budget: jax.Array,
    *,
    now: Sizes,
) -> tuple[Values, TaskProgress]:
    """Begin to run a chunk of examples, or go on with it, for so many trips at most."""
    tasks = _tasks(executable)
    plan = tasks.plan(now.lanes == 1)
    fixed, per_example = tasks.stored(_of_chunk(executable, tasks, args, chunk, now), now.lanes)
    s = run_once(begins, lambda s: state.begin(plan, now, s, per_example, chunk.size), s)
    trips = tasks.trips(tasks.machine(now, fixed))
    s, made = trips.run(s, budget)
    left = trips.waiting(s) > 0
    stuck = left & (made < budget)
    frames = s[pool.FREE_COUNT] == 0 if pool.FREE_COUNT in s else jnp.zeros((), bool)
    unfinished = tasks.unfinished(plan, now, s, left)[1]
    return s, TaskProgress(made, left, stuck, frames, unfinished & (jnp.arange(now.lanes) < chunk.size))


@device_program("old", "new")
def grow_tasks(executable: PcExecutable, s: Values, *, old: Sizes, new: Sizes) -> Values:
    """Return larger arrays, in which a run goes on."""
    grown: Values = jax.tree.map(jnp.copy, _tasks(executable).grown(old, new, s))
    return grown


@device_program("now")
def keep_chunk(
    executable: PcExecutable, begun: TaskBuffers, chunk: ExampleRange, *, now: Sizes
) -> tuple[tuple[Any, ...], jax.Array, tuple[Any, ...]]:
    """Return `values`, `todo` and `counts` with what the machine has left of its chunk."""
    tasks, s = _tasks(executable), begun.machine
    plan = tasks.plan(now.lanes == 1)
    left = tasks.trips(tasks.machine(now, {})).waiting(s) > 0
    unfinished = tasks.unfinished(plan, now, s, left)[1]
    raw = tasks.result(plan, now, s, jnp.zeros((), I32))
    place = jnp.arange(now.lanes, dtype=I32)
    at = jnp.where(place < chunk.size, chunk.first + place, begun.todo.shape[0])
    types = result_types(executable)
    values = tuple(
        old.at[at].set(to_storage(new, type_), mode="drop")
        for old, new, type_ in zip(begun.values, raw.values, types, strict=True)
    )
    counts = tuple(map(wide_counters.plus, begun.counts, raw.counts))
    return values, begun.todo.at[at].set(unfinished, mode="drop"), counts


def empty_buffers(executable: PcExecutable, args: Mapping[str, Any], inputs: int) -> TaskBuffers:
    """Return the arrays of a run before its first chunk; `args` in storage form."""
    tasks = _tasks(executable)
    types = map(storage_type, result_types(executable))
    values = tuple(jnp.zeros((inputs, *t.shape), t.dtype) for t in types)
    blocks = len(tasks.program.blocks)
    counts = tuple(wide_counters.zeros(blocks) for _ in PER_BLOCK) if tasks.options.stats else ()
    return TaskBuffers(dict(args), {}, values, jnp.zeros(inputs, bool), counts, ())


def result_types(executable: PcExecutable) -> tuple[ArrayType, ...]:
    """Return the types of the leaves of the result."""
    return tuple(_type(executable, v) for v in executable.program.results)


def described_machine(executable: PcExecutable, now: Sizes) -> Values:
    """Return the types of the arrays of a machine of lists."""
    described: Values = jax.eval_shape(partial(_tasks(executable).empty, now))
    return described


def _of_chunk(
    executable: PcExecutable, tasks: TaskExecutable, args: Mapping[str, Any], chunk: ExampleRange, now: Sizes
) -> dict[str, Any]:
    """The arguments of the examples of a chunk, by parameter of the program of tasks."""
    given = {}
    for v, name in executable.named(tasks).items():
        x = args[name]
        if is_mapped(executable, name, x) and x.shape[0] != now.lanes:
            rows = jnp.minimum(chunk.first + jnp.arange(now.lanes, dtype=I32), x.shape[0] - 1)
            x = jnp.take(x, rows, axis=0)
        given[v] = from_storage(x, _type(executable, name))
    return given


def _tasks(executable: PcExecutable) -> TaskExecutable:
    assert executable.tasks is not None
    return executable.tasks


def _type(executable: PcExecutable, name: str) -> ArrayType:
    type_ = executable.program.vars[name].type
    assert type_ is not None, name
    return type_
