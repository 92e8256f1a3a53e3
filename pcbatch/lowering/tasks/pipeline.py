"""The passes that make a program of tasks of a CFG, in order."""

from __future__ import annotations

from pcbatch.ir.cfg import CfgProgram
from pcbatch.ir.tasks import TaskProgram
from pcbatch.lowering.tasks import (
    constant_parameters,
    dead_parameters,
    join_spawns,
    lower_tasks,
    peel,
    tail_duplication,
)

PASSES = (
    dead_parameters.run,
    join_spawns.run,
    constant_parameters.run,
    dead_parameters.run,
    tail_duplication.run,
    dead_parameters.run,
    peel.run,
    dead_parameters.run,
)


def run(program: CfgProgram, shared: frozenset[str] = frozenset()) -> TaskProgram | None:
    """Return the optimised program of tasks; None if no two calls could ever run side by side.

    Args:
        program: A typed program, optimised, without prints, checks and failures.
        shared: The parameters of the entry that all examples share.
    """
    tasks = lower_tasks.run(program, shared)
    for run_pass in PASSES if tasks is not None else ():
        assert tasks is not None
        tasks = run_pass(tasks)
    return tasks
