"""Profiles of runs whose calls are side by side: the counts of the lists of tasks, and of the lanes that run the rest.

The machine of lists keeps no record over time. The run is made in stretches of equally many trips instead, and the
host reads its counts between them; how many trips there are it learns from a run before.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import jax
import numpy as np

from pcbatch.call.arguments import Arguments
from pcbatch.compiler.block_infos import block_infos
from pcbatch.compiler.growth import run_growing
from pcbatch.compiler.program import Program
from pcbatch.report.profile_source import source_lines
from pcbatch.report.schedule import BlockPlan, Explanation, explain_call, most_expensive_text
from pcbatch.runtime.costs import plan_modes
from pcbatch.runtime.execute.host_loop import HostLoop
from pcbatch.runtime.execute.run_kinds import begin
from pcbatch.runtime.execute.run_state import RunState
from pcbatch.runtime.execute.task_run import TaskRun
from pcbatch.runtime.sharding.lane_sharding import run_without_mesh
from pcbatch.runtime.tasks import TaskExecutable, pool
from pcbatch.runtime.vm import wide_counters
from pcbatch.runtime.vm.raw_result import RawResult

STRETCHES = 128
Counts = np.ndarray[Any, np.dtype[np.int64]]


@dataclass(frozen=True, slots=True, eq=False)
class Recorded:
    """The record of a run in stretches.

    Attributes:
        trips: int64[stretches].
        live: int64[stretches], examples that have no result, summed over trips.
        counts: int64[stretches, blocks, 3], visits, active and offered records; lanes' blocks first.
        frames: the frames of the pool, and the most that were seen in use between two stretches.
    """

    trips: Counts
    live: Counts
    counts: Counts
    frames: tuple[int, int]


@dataclass(frozen=True, slots=True, eq=False)
class ProfiledTasks:
    """All that a profile shows of a run by tasks: `program` is the one that ran, `source` the user's lines."""

    program: Program
    raw: RawResult
    plan: Explanation
    record: Recorded
    source: Any


def profiled_tasks(name: str, compiled: Program, given: Arguments) -> ProfiledTasks:
    """Run the examples of a call by tasks, with statistics over time."""
    record: list[Recorded] = []

    def run(program: Program) -> RawResult:
        executable = program.with_pc("profile").counting

        def start() -> RunState:
            return begin(executable, program.args(given), given.lanes, None, None)

        with program.mapping_errors(given), jax.debug_nans(False), jax.debug_infs(False), run_without_mesh():
            raw, found = _recorded(start)
        record.append(found)
        return raw

    program, raw = run_growing(compiled, run)
    assert program.tasks is not None
    last, tasks = record[-1], program.tasks
    lanes = explain_call(name, program, given, None)
    rows = _rows(tasks, given.lanes)
    plan, programs = tasks.plan(given.lanes == 1), [tasks.plan(given.lanes == 1).stack]
    counts = last.counts[:, len(lanes.rows) :]
    if np.any(last.counts[:, : len(lanes.rows)]):  # lanes have run some examples again
        rows, programs, counts = (*rows, *lanes.rows), [*programs, program.stages.opt], np.roll(
            last.counts, -len(lanes.rows), axis=1
        )  # fmt: skip
    pool_size, used = last.frames
    reason = f"calls run side by side, {len(plan.joins)} of {len(plan.blocks)} lists behind a wait"
    reason += f"; at least {used} of {pool_size} frames were in use at once" if plan.framed else "; no task has a frame"
    explained = replace(lanes, policy="lists", reason=reason, rows=rows, lanes=given.lanes)
    return ProfiledTasks(program, raw, explained, replace(last, counts=counts), source_lines(*programs))


def _recorded(start: Callable[[], RunState]) -> tuple[RawResult, Recorded]:
    total = start().advanced(HostLoop()).counts.trips
    span = max(1, -(-total // STRETCHES))
    state, before, marks = start(), None, []
    frames, used = 0, 0
    while not state.ended:
        later = state.advanced(HostLoop(span))
        after = np.stack([wide_counters.value(c) for c in later.outcome().counts], axis=-1).astype(np.int64)
        made = later.counts.trips - state.counts.trips
        live = later.counts.live if made else 0
        marks.append((made, made * live, after if before is None else after - before))
        if isinstance(later, TaskRun) and pool.FREE_COUNT in later.state.machine:
            frames = later.sizes.frames
            used = max(used, frames - int(later.state.machine[pool.FREE_COUNT]))
        state, before = later, after
    trips, live_, counts = zip(*marks, strict=True)
    return state.outcome(), Recorded(np.array(trips), np.array(live_), np.stack(counts), (frames, used))


def _rows(tasks: TaskExecutable, examples: int) -> tuple[BlockPlan, ...]:
    """Describe each list of tasks as a row of an explanation."""
    plan, width = tasks.plan(examples == 1), tasks.begins_with(examples).width
    costs = plan_modes.costs(plan.stack).blocks
    return tuple(
        BlockPlan(
            label=info.label,
            function=info.function,
            lines=info.lines,
            text=most_expensive_text(stack),
            lane_ns=cost.lane,
            dense_ns=cost.lane * width,
            visits=1.0,
            expensive=block.expensive,
            width=width,
            mode=f"lists of {width}",
            rounds=1,
            why="the newest tasks of a list run side by side",
            trip_ns=cost.lane * width,
            xla=None,
        )
        for info, block, stack, cost in zip(
            block_infos(tasks.program), plan.blocks, plan.stack.blocks, costs, strict=True
        )
    )
