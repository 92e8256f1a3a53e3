"""The passes that make a program of tasks of a CFG, in order."""

from __future__ import annotations

from typing import TypeVar

from pcbatch.errors import InternalError
from pcbatch.ir.cfg import CfgProgram
from pcbatch.ir.tasks import TaskProgram
from pcbatch.ir.text.printer import print_program
from pcbatch.ir.verifier import verify
from pcbatch.lowering.jaxpr_passes import fuse_products
from pcbatch.lowering.left_out import runs
from pcbatch.lowering.tasks import (
    appends,
    constant_parameters,
    dead_parameters,
    deferred,
    join_spawns,
    lower_tasks,
    peel,
    tail_duplication,
)
from pcbatch.lowering.tasks.alike_failures import without_messages

ProgramT = TypeVar("ProgramT", CfgProgram, TaskProgram)

CFG_PASSES = (appends.run, deferred.run)

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


def run(program: CfgProgram, shared: frozenset[str] = frozenset(), defers: bool = True) -> TaskProgram | None:
    """Return the optimised program of tasks; None if no two calls could ever run side by side.

    Args:
        program: A typed program, optimised, without prints and checks.
        shared: The parameters of the entry that all examples share.
        defers: Whether loops may put off what they do with results of calls.
    """
    tasks = lower_tasks.run(prepared(program, defers), shared)
    if tasks is None:
        return None
    tasks = checked(tasks, "lower_tasks")
    for run_pass in PASSES:
        new = run_pass(tasks)
        tasks = tasks if new == tasks else checked(new, run_pass.__module__)
    return checked(fuse_products.run_tasks(tasks), "fuse_products") if runs("fuse_products") else tasks


def prepared(program: CfgProgram, defers: bool = True) -> CfgProgram:
    """Return the CFG as it is lowered: with more calls that need not be waited for at once."""
    program = without_messages(program)
    for run_pass in CFG_PASSES if defers else CFG_PASSES[:-1]:
        new = run_pass(program)
        program = program if new == program else checked(new, run_pass.__module__)
    return program


def checked(program: ProgramT, name: str) -> ProgramT:
    """Return a program that the verifier accepts; raises InternalError if pass `name` left it invalid."""
    faults = verify(program)
    if faults:
        raise InternalError(f"after {name}:\n" + "\n".join(map(str, faults)) + "\n" + print_program(program))
    return program
