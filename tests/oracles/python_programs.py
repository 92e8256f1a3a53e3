"""The meanings of a random program over Python's own data, which must be the same: a difference names the stage.

Plain Python itself, the interpreters of the CFG, of the optimised CFG and of the stack programs, and JAX; JAX also with
other lanes beside. A program that the compiler refuses is no failure.
"""

from __future__ import annotations

import copy
import itertools
import linecache
import math
import signal
import zlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

import pcbatch
from pcbatch.api import programs as signatures
from pcbatch.compiler.program import Program
from pcbatch.data.capacity import Room
from pcbatch.data.host.host_forms import in_host_form
from pcbatch.data.host.ragged import Ragged, shortened
from pcbatch.errors import BatchRuntimeError, CompileError, UsageError
from pcbatch.ir.cfg import CfgProgram
from pcbatch.ir.interpret import LaneFailed
from pcbatch.ir.ops import CAPACITY
from pcbatch.lowering.cfg_passes import unroll_recursion
from pcbatch.lowering.stack_passes import lower_calls, storage_classes
from tests.oracles.interpret_cfg import interpret_cfg
from tests.oracles.interpret_stack import interpret_stack
from tests.oracles.interpreters import Mismatch
from tests.oracles.numpy_jaxpr import on_numpy
from tests.oracles.plans import replanned
from tests.oracles.task_limits import check_limits
from tests.oracles.task_programs import check_tasks
from tests.programs.compare import status_of
from tests.programs.container_programs import PythonProgram

START = 4  # the capacity that containers begin with, so that they grow often
LARGEST = 1024
SECONDS = 0.5  # of plain Python; what takes longer need not end
COMPILING = 120.0  # seconds, likewise
RAISED = (
    LookupError, ArithmeticError, ValueError, TypeError, RuntimeError, AssertionError, AttributeError, NameError,
    StopIteration,
)  # fmt: skip

KEYS_CHANGED = "keys changed during iteration"
SAID = {"AssertionError": "failed an assertion"}

_serial = itertools.count()


class Endless(BaseException):
    """A program that plain Python does not finish soon, or whose containers grow large; no `except Exception` of the
    program itself must catch it."""


class Refused(Exception):
    """A program that the compiler refuses."""

    def __init__(self, error: CompileError | UsageError) -> None:
        super().__init__(str(error))
        self.code = error.diagnostics[0].code
        self.title = error.diagnostics[0].title


@dataclass(frozen=True, slots=True)
class Case:
    """A program with arguments for some lanes, and what plain Python says."""

    program: PythonProgram
    fn: Callable[..., Any]
    columns: list[list[Any]]
    expected: tuple[Any, ...]  # per lane: a result, or an exception

    @property
    def lanes(self) -> int:
        """The number of examples."""
        return len(self.expected)

    def args(self, lanes: Sequence[int]) -> tuple[Any, ...]:
        """The arguments of a call for these lanes."""
        kinds = [kind for _, kind in self.program.params]
        return tuple(
            argument_of(kind, [column[k] for k in lanes]) for kind, column in zip(kinds, self.columns, strict=True)
        )


def argument_of(kind: str, values: list[Any]) -> Any:
    """Return the argument of a call for a parameter of some kind, with a value for each lane."""
    match kind:
        case "int":
            return jnp.array(values, jnp.int32)
        case "list":
            return pcbatch.ragged(values, jnp.int32)
        case "flt":
            return jnp.array(values, float)
        case "flist":
            return pcbatch.ragged(values, jnp.zeros(0).dtype)
    return pcbatch.pack(values)


@contextmanager
def limited(seconds: float = SECONDS) -> Iterator[None]:
    """Raise Endless within the context, again and again, if what runs there does not end soon; and behind it, for a
    `finally` of the program may raise something else meanwhile."""
    over = False

    def stop(*_: object) -> None:
        nonlocal over
        over = True
        raise Endless

    before = signal.signal(signal.SIGALRM, stop)
    signal.setitimer(signal.ITIMER_REAL, seconds, seconds)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)
    if over:
        raise Endless


def prepare(program: PythonProgram, seed: int, lanes: int) -> Case:
    """Load a program and run it plainly on every lane.

    A lane that plain Python ends with a ZeroDivisionError is left out: outside the body of a `try` a division by zero
    gives what JAX gives (docs/users/types.md), so such a lane goes on.

    Raises:
        Endless: it does not end soon, or every lane divides by zero.
    """
    number = next(_serial)
    linecache.cache.pop(f"<python program {number - 100}>", None)
    fn = program.load(f"<python program {number}>")
    columns = program.columns(seed, lanes)
    expected = []
    with limited():
        for k in range(lanes):
            example = [copy.copy(column[k]) if isinstance(column[k], list) else column[k] for column in columns]
            try:
                expected.append(fn(*example))
            except RAISED as error:
                expected.append(error)
    kept = [k for k, want in enumerate(expected) if not isinstance(want, ZeroDivisionError)]
    if not kept:
        raise Endless
    return Case(program, fn, [[column[k] for k in kept] for column in columns], tuple(expected[k] for k in kept))


def compiled(case: Case, capacity: int, **options: Any) -> tuple[Program, Any]:
    """The program of a case with room for so many elements in new containers, and its arguments."""
    try:
        # What no value of a lane enters runs while compiling, and a loop that no lane comes to may have no end there.
        with limited(COMPILING):
            entry = replanned(pcbatch.batch(case.fn), **options)
            call = entry._programs.prepare(case.args(range(case.lanes)), {})
            return entry._programs.compile(call, room=Room(capacity, capacity, capacity)), call
    except (CompileError, UsageError) as error:
        raise Refused(error) from None


def check_stages(case: Case, capacity: int = START) -> bool:
    """Interpret every stage that differs from the one before; what had no room is compiled again with more. Gives
    whether calls may run side by side: then the programs of tasks were interpreted, too.

    Raises:
        Refused: the compiler does not take the program.
        Mismatch: a lane gets something else than plain Python gives.
        Endless: containers grow large.
    """
    while True:
        program, call = compiled(case, capacity)
        s = program.stages
        stages: dict[str, Any] = {"cfg": s.cfg, "optimised cfg": s.optimised_cfg, "inlined cfg": s.inlined_cfg,
                                  "stack": s.stack, "opt": s.opt}  # fmt: skip
        for name, before in (("inlined cfg", s.optimised_cfg), ("optimised cfg", s.cfg), ("opt", s.stack)):
            if stages[name] == before:
                del stages[name]
        unrolled = unroll_recursion.run(s.inlined_cfg)
        if unrolled != s.inlined_cfg:  # for lanes one after the other
            stages |= {"unrolled cfg": unrolled, "unrolled stack": storage_classes.run(lower_calls.run(unrolled))}
        if all([_check_stage(case, program, call, name, stage) for name, stage in stages.items()]):
            seed, examples = zlib.crc32(case.program.text.encode()), _examples(case, program, call)
            forks = check_tasks(s.inlined_cfg, examples, seed)
            if forks:
                check_limits(s.inlined_cfg, s.opt, examples, seed)
            return forks
        capacity *= 4
        if capacity > LARGEST:
            raise Endless


def _check_stage(case: Case, program: Program, call: Any, name: str, stage: Any) -> bool:
    """Compare all lanes; False if one had no room."""
    run: Any = interpret_cfg if isinstance(stage, CfgProgram) else interpret_stack
    numpy = on_numpy(stage)
    examples = _examples(case, program, call)
    room = True
    with np.errstate(all="ignore"):
        for k, want in enumerate(case.expected):
            try:
                leaves, _ = run(numpy, examples[k])
                found: Any = _decoded(program, leaves)
            except LaneFailed as error:
                if error.kind == CAPACITY:
                    room = False
                    continue
                found = error
            compare(f"stage {name}, lane {k}", found, want)
    return room


def _examples(case: Case, program: Program, call: Any) -> list[list[Any]]:
    """The arguments of the entry for each lane."""
    args = program.args(call)
    mapped = program.mapped(args)
    columns = [(np.asarray(x), v in mapped) for v, x in args.items()]
    return [[x[k] if each else x for x, each in columns] for k in range(case.lanes)]


def _decoded(program: Program, leaves: Sequence[Any]) -> Any:
    assert program.stages.result is not None
    tree = program.stages.result.tree
    value = jax.tree.unflatten(tree, [np.asarray(leaf)[None] for leaf in leaves])
    return of_lane(shortened(in_host_form(value)), 0)


def of_lane(value: Any, k: int) -> Any:
    """A lane's part of a result, as Python's own data."""
    match value:
        case Ragged():
            return value.tolist()[k]
        case tuple():
            return tuple(of_lane(part, k) for part in value)
        case list():
            return [of_lane(part, k) for part in value]
        case dict():
            return {key: of_lane(part, k) for key, part in value.items()}
    return np.asarray(value)[k].item()


def compare(where: str, found: Any, want: Any) -> None:
    """Raise Mismatch unless a lane ends as plain Python does.

    A lane always ends where the keys of a dict have changed in a loop over it and its size has not; what Python does
    follows from its own table.
    """
    if isinstance(found, LaneFailed) and KEYS_CHANGED in found.message:
        return
    if isinstance(want, Exception):
        name = found.name if isinstance(found, LaneFailed) else None
        if name == "UnboundLocalError" and type(want) is NameError and "free variable" in str(want):
            return  # before Python 3.12 a comprehension was a function of its own: the class above is raised there
        if name != type(want).__name__:
            raise Mismatch(f"{where}: {found!r} instead of {want!r}")
    elif isinstance(found, LaneFailed) or not _same(_ordered(found), _ordered(want)):
        raise Mismatch(f"{where}: {found!r} instead of {want!r}")


def _same(found: Any, want: Any) -> bool:
    """Whether two values are the same, numbers with a fraction but for their last digits."""
    if isinstance(want, (list, tuple)):
        return type(found) is type(want) and len(found) == len(want) and all(map(_same, found, want))
    if isinstance(want, float) and isinstance(found, float):
        return math.isclose(found, want, rel_tol=1e-9, abs_tol=1e-9) or (math.isnan(found) and math.isnan(want))
    return bool(found == want)


def _ordered(value: Any) -> Any:
    """A value in which the order of the keys of dicts counts."""
    match value:
        case tuple() | list():
            return [type(value), *map(_ordered, value)]
        case dict():
            return [dict, *value.items()]
    return value


def check_jax(case: Case, options: Mapping[str, Any], rng: np.random.Generator) -> None:
    """Run the batch with some options, then its lanes in another order, then many times one lane."""
    start, signatures.START_CAPACITY = signatures.START_CAPACITY, START
    try:
        batched = replanned(pcbatch.batch(case.fn), **options)
        everything = list(range(case.lanes))
        orders = (everything, rng.permutation(case.lanes).tolist(), [int(rng.integers(case.lanes))] * case.lanes)
        for order in orders:
            _check_order(case, batched, order, f"JAX with {dict(options)}, lanes {order}")
    except (CompileError, UsageError) as error:
        raise Refused(error) from None
    finally:
        signatures.START_CAPACITY = start


def _check_order(case: Case, batched: Any, order: list[int], about: str) -> None:
    result = batched.run(*case.args(order))
    expected = [case.expected[k] for k in order]
    statuses = [status_of(want) for want in expected]
    failures = {type(want).__name__ for want in expected if isinstance(want, Exception)}
    found = np.asarray(result.status).tolist()
    said = _report(batched, case, order) if failures or found != statuses else ""
    if KEYS_CHANGED in said:
        return
    if found != statuses:
        raise Mismatch(f"{about}: status {found} instead of {statuses}; plain Python: {expected}")
    for place, want in enumerate(expected):
        if not isinstance(want, Exception):
            compare(f"{about}, place {place}", of_lane(result.value, place), want)
    if missing := [name for name in failures if SAID.get(name, name) not in said]:
        raise Mismatch(f"{about}: no {missing} in\n{said or 'no report'}")


def _report(batched: Any, case: Case, order: list[int]) -> str:
    """What a call says of the lanes that fail."""
    try:
        batched(*case.args(order))
    except BatchRuntimeError as error:
        return str(error)
    return ""
