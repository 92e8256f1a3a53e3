"""Five meanings of one random program, which must be the same: a difference names the first stage that is wrong.

Plain Python (over NumPy, nothing of pcbatch in it), the interpreters of the CFG, of the stack program and of the
optimised one, and the program that JAX runs. (The optimised CFG, which only the local strategy runs, is one more.)
What a lane prints, and how it fails, is a part of the meaning.
"""

from __future__ import annotations

import contextlib
import io
import itertools
import linecache
import re
import zlib
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import jax
import numpy as np
import pytest

import pcbatch
from pcbatch.ir.cfg import CfgProgram
from pcbatch.ir.interpret import LaneFailed
from pcbatch.ir.stack import StackProgram
from tests.oracles.interpret_cfg import interpret_cfg
from tests.oracles.interpret_stack import interpret_stack
from tests.oracles.numpy_jaxpr import on_numpy
from tests.oracles.plans import replanned
from tests.oracles.task_programs import check_tasks
from tests.programs.compare import status_of
from tests.programs.random_programs import PlainArray, RandomProgram, load, load_plain

VARIANTS: tuple[dict[str, str], ...] = (
    {},
    {"schedule": "sweep", "emitter": "port"},
    {"schedule": "earliest", "emitter": "port"},
    {"schedule": "largest", "emitter": "guard"},
    {"strategy": "local"},
    {"schedule": "sweep", "emitter": "guard"},
    {"schedule": "largest", "emitter": "port"},
    {"schedule": "earliest", "emitter": "guard"},
)

MODES: tuple[Any, ...] = (
    None,
    pcbatch.Dense(),
    pcbatch.Dense(2),
    *(pcbatch.Few(width) for width in range(1, 5)),
    pcbatch.Strips(1),
    pcbatch.Strips(2),
)
SCHEDULES = ("auto", "earliest", "largest", "sweep", "drain")

Leaves = list[Any]
_serial = itertools.count()


class Mismatch(AssertionError):
    """A stage that does not mean what the stage before it meant."""


@dataclass(frozen=True, slots=True)
class Ending:
    """How one lane ends, and what it printed before."""

    outcome: Leaves | Exception
    printed: str


@dataclass(frozen=True, slots=True)
class Case:
    """A program with inputs for some lanes, its batched function, and what plain Python says."""

    program: RandomProgram
    args: tuple[np.ndarray, ...]
    entry: Any
    expected: tuple[Ending, ...]  # per lane

    @property
    def lanes(self) -> int:
        """How many examples there are."""
        return len(self.expected)


def leaves(result: Any) -> Leaves:
    """The parts of what a program returns: numbers and arrays, or tuples and dicts of them."""
    if isinstance(result, dict):
        result = tuple(result[key] for key in sorted(result))
    return [leaf for part in result for leaf in leaves(part)] if isinstance(result, tuple) else [result]


def ending(run: Callable[[], Leaves]) -> Ending:
    """How one lane ends. Other exceptions than those of a program are mistakes."""
    with contextlib.redirect_stdout(io.StringIO()) as written:
        try:
            outcome: Leaves | Exception = run()
        except (AssertionError, ValueError, RuntimeError, LaneFailed) as error:
            outcome = error
    return Ending(outcome, written.getvalue())


def prepare(program: RandomProgram, seed: int, lanes: int) -> Case:
    """Load a program and run it plainly on every lane."""
    number = next(_serial)
    name = f"<random program {number}>"
    linecache.cache.pop(f"<random program {number - 100}>", None)
    args = program.arguments(seed, lanes)
    plain = load_plain(program.text, name)
    examples = [[_example(arg[k]) for arg in args] for k in range(lanes)]
    expected = tuple(ending(lambda e=e: leaves(plain(*e))) for e in examples)
    return Case(program, args, load(program.text, name), expected)


def _example(value: Any) -> Any:
    """What a user would pass to the plain function."""
    return value.view(PlainArray) if value.ndim else value.item()


def check_stages(case: Case) -> dict[str, set[str]]:
    """Interpret every stage; gives the blocks that ran in each, in lanes that do not fail.

    The pipeline has verified the stages. There is an entry "tasks", an empty one, if calls may run side by side.
    """
    stages = case.entry.lower(*case.args).stages
    named = {
        "cfg": stages.cfg,
        "optimised cfg": stages.optimised_cfg,
        "inlined cfg": stages.inlined_cfg,
        "stack": stages.stack,
        "opt": stages.opt,
    }
    ran = {name: _check_stage(case, name, stage) for name, stage in named.items()}
    examples = [[arg[k] for arg in case.args] for k in range(case.lanes)]
    if check_tasks(stages.inlined_cfg, examples, zlib.crc32(case.program.text.encode())):
        ran["tasks"] = set()
    return ran


def _check_stage(case: Case, name: str, stage: CfgProgram | StackProgram) -> set[str]:
    program = on_numpy(stage)
    interpret: Any = interpret_cfg if isinstance(program, CfgProgram) else interpret_stack
    ran: set[str] = set()

    def run(example: list[Any]) -> Leaves:
        results, trace = interpret(program, example)
        ran.update(trace.blocks)
        return list(results)

    with np.errstate(all="ignore"):
        for k, want in enumerate(case.expected):
            found = ending(lambda k=k: run([arg[k] for arg in case.args]))
            _compare(f"stage {name}, lane {k}", found, want)
    return ran


def check_jax(case: Case, options: Mapping[str, Any], lanes: int | None = None, jit: bool = False) -> None:
    """Run the batch with some options; through so many `lanes`, if not all at once; inside a program of the user's."""
    about = f"JAX with {dict(options)}" + (f", {lanes} lanes" if lanes else "") + (", inside jit" if jit else "")
    batched = replanned(case.entry, **options)
    streams = lanes is not None and not any(want.printed for want in case.expected)  # a lane prints under its number

    def run(*args: Any) -> pcbatch.Result:
        return batched.map(*args, lanes=lanes) if streams else batched.run(*args)

    with contextlib.redirect_stdout(io.StringIO()) as written:
        result = (jax.jit(run) if jit else run)(*case.args)
        jax.effects_barrier()
    statuses = [status_of(want.outcome) for want in case.expected]
    if (found := np.asarray(result.status).tolist()) != statuses:
        raise Mismatch(f"{about}: status {found} instead of {statuses}")
    lines = written.getvalue().splitlines(keepends=True)
    columns = [np.asarray(leaf) for leaf in leaves(result.value)]
    for k, want in enumerate(case.expected):
        mark = f"[lane {k}] "
        printed = "".join(line.removeprefix(mark) for line in lines if line.startswith(mark))
        failed = isinstance(want.outcome, Exception)
        outcome = want.outcome if failed else [column[k] for column in columns]
        _compare(f"{about}, lane {k}", Ending(outcome, printed), want)
    if any(statuses):
        _check_report(case, batched, about)


def _check_report(case: Case, batched: Any, about: str) -> None:
    """A call names each lane that failed, and what it says; a message that is constant stands in the title."""
    with contextlib.redirect_stdout(io.StringIO()), pytest.raises(pcbatch.BatchRuntimeError) as caught:
        batched(*case.args)
    titles, text = [found.title for found in caught.value.diagnostics], str(caught.value)
    for k, want in enumerate(case.expected):
        if not isinstance(want.outcome, Exception):
            continue
        said = str(want.outcome)
        formatted = re.search(rf"\b{k} \(.*\): {re.escape(said)}$", text, re.MULTILINE)
        constant = re.search(rf"\b{k} \(", text) and any(title.endswith(said) for title in titles)
        if not formatted and not constant:
            raise Mismatch(f"{about}: nothing about lane {k}, {want.outcome!r}, in\n{text}")


def _compare(where: str, found: Ending, want: Ending) -> None:
    if found.printed != want.printed:
        raise Mismatch(f"{where}: printed {found.printed!r} instead of {want.printed!r}")
    if not _same(found.outcome, want.outcome):
        raise Mismatch(f"{where}: {found.outcome!r} instead of {want.outcome!r}")


def _same(found: Leaves | Exception, want: Leaves | Exception) -> bool:
    if isinstance(want, Exception):
        return isinstance(found, Exception) and _failure(found) == _failure(want)
    return not isinstance(found, Exception) and len(found) == len(want) and all(map(np.array_equal, found, want))


def _failure(error: Exception) -> tuple[str, str]:
    """What a failure says."""
    return (error.name, error.message) if isinstance(error, LaneFailed) else (type(error).__name__, str(error))
