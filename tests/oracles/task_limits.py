"""Limits of tasks are sound: what tasks count is as much as lanes do, or more, in every form between passes.

So an example that stays within `max_steps` and `max_depth` by tasks does so in lanes, and needs none.
"""

from __future__ import annotations

import random
from collections.abc import Sequence
from typing import Any

import numpy as np

from pcbatch.ir.cfg import CfgProgram
from pcbatch.ir.interpret import LaneFailed
from pcbatch.ir.stack import StackProgram
from pcbatch.ir.tasks import TaskProgram
from pcbatch.lowering.jaxpr_passes import rng_by_lane
from pcbatch.lowering.stack_passes import lower_calls
from pcbatch.lowering.tasks import depth_limit, pipeline
from tests.oracles.interpret_cfg import Trace, interpret_cfg
from tests.oracles.interpret_stack import interpret_stack
from tests.oracles.interpret_tasks import TaskTrace, interpret_tasks
from tests.oracles.numpy_jaxpr import on_numpy
from tests.oracles.task_programs import STEPS, WrongTasks, task_programs


def steps_of(program: TaskProgram, trace: TaskTrace) -> int:
    """The blocks of lanes that tasks have counted."""
    each = {block.label: block.steps for block in program.blocks}
    return sum(each[label] * visits for label, visits in trace.blocks.items())


def check_limits(cfg: CfgProgram, opt: StackProgram, examples: Sequence[Sequence[Any]], seed: int) -> None:
    """Compare the counts of one example with those of lanes.

    Args:
        cfg: The CFG that tasks are made from.
        opt: The program that lanes run.
        examples: The arguments of each lane, of which one is taken.
        seed: Some random number.

    Raises:
        WrongTasks: tasks count less than lanes do.
    """
    example = examples[random.Random(seed).randrange(len(examples))]
    with np.errstate(all="ignore"):
        try:
            results, called = interpret_stack(on_numpy(lower_calls.run(cfg)), example, None, STEPS)
            lanes = interpret_stack(on_numpy(opt), example, None, STEPS)[1]
        except LaneFailed:
            return
        for name, tasks in task_programs(cfg):
            found = steps_of(tasks, interpret_tasks(on_numpy(tasks), example, None, STEPS)[1])
            if not _steps(lanes) <= _steps(called) <= found:
                raise WrongTasks(f"after {name}: {found} steps, but {_steps(called)} and {_steps(lanes)} in lanes")
        if lanes.max_depth > called.max_depth:
            raise WrongTasks(f"{lanes.max_depth} frames in lanes, {called.max_depth} calls")
        for most in range(max(0, called.max_depth - 1), called.max_depth + 1):
            _check_depth(cfg, example, results, most, called.max_depth)


def _check_depth(cfg: CfgProgram, example: Sequence[Any], results: Sequence[Any], most: int, depth: int) -> None:
    limited = depth_limit.run(rng_by_lane.run_cfg(cfg), most)
    tasks = pipeline.run(limited)
    assert tasks is not None
    runs = (
        (lambda: interpret_cfg(on_numpy(limited), example), True),
        (lambda: _tasks(on_numpy(tasks), example), False),  # its failures are alike: lanes say which one it was
    )
    for run, is_told in runs:
        try:
            found = run()[0]
        except LaneFailed as failed:
            if most >= depth or (is_told and failed.name != "RecursionError"):
                raise WrongTasks(f"{failed!r}, but {most} of {depth} calls may be open") from failed
            continue
        if most < depth:
            raise WrongTasks(f"only {most} of {depth} calls may be open")
        for a, b in zip(found, results, strict=True):
            np.testing.assert_array_equal(np.asarray(a), np.asarray(b))


def _tasks(program: TaskProgram, example: Sequence[Any]) -> tuple[tuple[Any, ...], TaskTrace]:
    return interpret_tasks(program, example, None, STEPS, seed=3)


def _steps(trace: Trace) -> int:
    return sum(trace.blocks.values())
