"""Runs inside a trace, where the host decides nothing: one program, on one device, in which nothing grows.

What tasks cannot finish is run again by lanes, in the same program.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import jax
import jax.numpy as jnp

from pcbatch.lowering.typing.jax_types import is_symbolic
from pcbatch.runtime.execute import refill
from pcbatch.runtime.execute.batch_programs import run_whole
from pcbatch.runtime.execute.queue_programs import started
from pcbatch.runtime.lowering_platform import lowering_platform
from pcbatch.runtime.scalar.worth import beside
from pcbatch.runtime.sharding.lane_sharding import LaneSharding, ShardedArguments
from pcbatch.runtime.tasks import TaskExecutable
from pcbatch.runtime.tasks.fallback import counted
from pcbatch.runtime.vm.lane_window import lane_mask
from pcbatch.runtime.vm.raw_result import RawResult

if TYPE_CHECKING:
    from pcbatch.runtime.execute.executor import PcExecutable


def run_traced(
    executable: PcExecutable, given: ShardedArguments, lanes: int, through: int | None = None, smooth: bool = False
) -> RawResult:
    """Run on one device inside a trace, where stacks have a fixed depth and the host decides nothing.

    Args:
        executable: the program.
        given: the arguments.
        lanes: the number of inputs.
        through: the lanes of the machine, if not all inputs run at once.
        smooth: whether JAX differentiates it.
    """
    if not smooth and _runs_one_by_one(executable, lanes):
        return run_traced(executable.one_by_one, given, lanes)
    sharding, depth = LaneSharding(None, lanes), executable.stacks.traced()
    if not is_symbolic(lanes):
        slots = 0 if through is None else lanes
        executable.memory.check(sharding, min(through or lanes, lanes), depth, slots)
    if smooth:
        args = executable.arguments.natural({**given.mapped, **given.common})
        state = executable.smooth.advance(executable.smooth.start(args, lanes, depth, given.end, given.names))
        return executable.results.of_state(state, depth)
    width = through or executable.width(lanes)
    width = width if is_symbolic(lanes) else min(width, lanes)
    known = through is None and given.end is None and not is_symbolic(lanes)
    if known and executable.tasks is not None and executable.tasks.takes(lanes):
        return run_by_tasks(executable, executable.tasks, given, lanes)
    if through is None and (width is lanes or width == lanes):
        out: RawResult = run_whole(executable, given, spread=sharding, depth=depth, keep=False, traced=True)[0]
        return out
    end = jnp.int32(lanes) if given.end is None else given.end
    given = replace(given, end=end)
    queue, stored = started(executable, given, given.common, sharding, width, lanes, depth)
    return executable.results.of_queue(refill.run(executable.traced_machine, queue, stored), depth)


def _runs_one_by_one(executable: PcExecutable, lanes: int) -> bool:
    """Whether so many lanes run one after the other: on a CPU, if that is estimated to be faster."""
    if executable.forms is None or lowering_platform() != "cpu" or is_symbolic(lanes):
        return False
    return lanes in beside(executable.one_by_one.alone, executable.costs, executable.tasks is not None)


def run_by_tasks(executable: PcExecutable, tasks: TaskExecutable, given: ShardedArguments, lanes: int) -> RawResult:
    """Run all inputs by tasks, and then those in lanes that tasks cannot finish."""
    args = executable.arguments.natural({**given.mapped, **given.common})
    done, todo = tasks.run_traced({v: args[name] for v, name in executable.named(tasks).items()}, lanes)
    again = run_in_lanes(executable, args, lanes, given.names, todo)
    return merged_by_mask(done, again, todo, counted(done.counts, again.counts, executable.machine.layout.exit))


def run_in_lanes(
    executable: PcExecutable, args: Mapping[str, Any], lanes: int, names: Any, todo: jax.Array
) -> RawResult:
    """Run some inputs in lanes. Where there are none, no stacks are made.

    Args:
        executable: The program.
        args: The arguments of all inputs, by parameter.
        lanes: The number of inputs.
        names: int32[lanes]: the numbers that lanes print; None: their own.
        todo: bool[lanes]: the inputs that run.
    """
    machine, depth = executable.traced_machine, executable.stacks.traced()

    def run(todo: jax.Array) -> RawResult:
        return executable.results.of_state(machine.advance(machine.start(args, lanes, depth, None, names, todo)), depth)

    def nothing(todo: jax.Array) -> RawResult:
        none: RawResult = jax.tree.map(lambda x: jnp.zeros(x.shape, x.dtype), jax.eval_shape(run, todo))
        return none

    # Stacks are filled with zeros before a run; that alone takes longer than many a run by tasks.
    out: RawResult = jax.lax.cond(jnp.any(todo), run, nothing, todo)
    return out


def merged_by_mask(tasks: RawResult, lanes: RawResult, todo: jax.Array, counts: tuple[Any, ...]) -> RawResult:
    """Return the result of all inputs inside a trace: of those of `todo`, bool[lanes], what lanes say."""
    pairs = zip(tasks.values, lanes.values, strict=True)
    values = tuple(jnp.where(lane_mask(todo, again), again, done) for done, again in pairs)
    return replace(lanes, values=values, trips=tasks.trips + lanes.trips, counts=counts)
