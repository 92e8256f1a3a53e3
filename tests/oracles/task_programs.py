"""Programs of tasks against the CFG that they are made from: in every form between passes, in several orders of tasks.

What the CFG means is compared with plain Python elsewhere. Results must be the same to the last bit, also of floats,
whose sums depend on the order of their terms.
"""

from __future__ import annotations

import random
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from pcbatch.errors import InternalError
from pcbatch.ir.cfg import CfgProgram
from pcbatch.ir.interpret import LaneFailed
from pcbatch.ir.tasks import TaskProgram
from pcbatch.ir.text.printer import print_program
from pcbatch.lowering.jaxpr_passes import rng_by_lane
from pcbatch.lowering.tasks import lower_tasks, pipeline
from pcbatch.lowering.tasks.worth import why_not
from pcbatch.runtime.tasks import task_plan
from tests.oracles.interpret_cfg import interpret_cfg
from tests.oracles.interpret_tasks import interpret_tasks
from tests.oracles.numpy_jaxpr import on_numpy

ORDERS = 2  # of tasks, besides that of the meaning, for the first and the last program; others are run in one
STEPS = 100_000  # blocks that an example may visit

Outcome = tuple[Any, ...] | LaneFailed


class WrongTasks(AssertionError):
    """A program of tasks that does not mean what its CFG means."""


def task_programs(cfg: CfgProgram, shared: frozenset[str] = frozenset()) -> Iterator[tuple[str, TaskProgram]]:
    """The verified programs of tasks after each pass that changes something, with its name; none without forks."""
    if why_not(cfg) is not None:
        return
    tasks = lower_tasks.run(pipeline.prepared(rng_by_lane.run_cfg(cfg)), shared)
    if tasks is None:
        return
    yield "lower_tasks", pipeline.checked(tasks, "lower_tasks")
    for k, run_pass in enumerate(pipeline.PASSES):
        new = run_pass(tasks)
        if new != tasks:
            tasks = new
            name = f"{run_pass.__module__.rpartition('.')[2]}, pass {k} on tasks"
            yield name, pipeline.checked(tasks, name)


def check_tasks(cfg: CfgProgram, examples: Sequence[Sequence[Any]], seed: int) -> bool:
    """Interpret the tasks of a CFG; gives whether it has any.

    Args:
        cfg: The CFG that tasks are made from.
        examples: The arguments of each lane.
        seed: Some random number, for orders of tasks and for which parameters examples share.

    Raises:
        WrongTasks: a program of tasks means something else.
        InternalError: the verifier or the machine objects to one.
    """
    rng = random.Random(seed)
    params = cfg.function(cfg.entry).params
    shared = frozenset(p for p in params if rng.randrange(2)) if rng.randrange(3) == 0 else frozenset()
    plain = on_numpy(cfg)
    programs = [*task_programs(cfg, shared)]
    if not programs:
        return False
    for single in (False, True):
        task_plan.make(programs[-1][1], single)  # refuses what the machine cannot run
    expected = [_ending(lambda e=e: interpret_cfg(plain, e)[0]) for e in examples]
    for name, tasks in programs:
        runnable = on_numpy(tasks)
        drawn = [rng.randrange(1000) for _ in range(ORDERS)]
        for k, (example, want) in enumerate(zip(examples, expected, strict=True)):
            outer = tasks in (programs[0][1], programs[-1][1])
            for order in (None, *drawn) if outer else (rng.choice((None, *drawn)),):
                try:
                    found = _ending(lambda e=example, o=order: interpret_tasks(runnable, e, None, STEPS, seed=o)[0])
                except InternalError as error:
                    raise WrongTasks(f"{_about(name, k, order)}: {error}\n{print_program(tasks)}") from error
                if not _same(found, want):
                    raise WrongTasks(f"{_about(name, k, order)}: {found!r} instead of {want!r}\n{print_program(tasks)}")
    return True


def _about(name: str, lane: int, order: int | None) -> str:
    return f"tasks after {name}, lane {lane}, order {order}"


def _ending(run: Any) -> Outcome:
    with np.errstate(all="ignore"):
        try:
            results: tuple[Any, ...] = run()
        except LaneFailed as failed:
            return failed
    return results


def _same(found: Outcome, want: Outcome) -> bool:
    if isinstance(found, LaneFailed) or isinstance(want, LaneFailed):
        return isinstance(found, LaneFailed) and isinstance(want, LaneFailed)  # of tasks it is not told how
    return len(found) == len(want) and all(map(_identical, found, want))


def _identical(a: Any, b: Any) -> bool:
    if "key<" in str(getattr(a, "dtype", "")):
        return bool((np.asarray(a._base_array) == np.asarray(b._base_array)).all())
    a, b = np.asarray(a), np.asarray(b)
    return a.dtype == b.dtype and a.shape == b.shape and np.array_equal(a, b, equal_nan=a.dtype.kind in "fc")
