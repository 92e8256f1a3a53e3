"""Runs by tasks inside a trace: what tasks cannot finish is run again by lanes, in the same program."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import jax
import jax.numpy as jnp

from pcbatch.runtime.sharding.lane_sharding import ShardedArguments
from pcbatch.runtime.tasks.fallback import counted
from pcbatch.runtime.vm.lane_window import lane_mask
from pcbatch.runtime.vm.raw_result import RawResult

if TYPE_CHECKING:
    from pcbatch.runtime.execute.executor import PcExecutable


def run_by_tasks(executable: PcExecutable, given: ShardedArguments, lanes: int) -> RawResult:
    """Run all inputs by tasks, and then those in lanes that tasks cannot finish."""
    tasks = executable.tasks
    assert tasks is not None
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
