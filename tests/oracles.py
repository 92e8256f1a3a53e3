"""Five meanings of one random program, which must be the same: a difference names the first stage that is wrong.

Plain Python (over NumPy, nothing of pcbatch in it), the interpreters of the CFG, of the stack program and of the
optimised one, and the program that JAX runs. (The optimised CFG, which only the local strategy runs, is one more.)
"""

from __future__ import annotations

import itertools
import linecache
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from pcbatch.ir.cfg import CfgProgram
from pcbatch.ir.interpret import interpret_cfg, interpret_stack
from pcbatch.ir.stack import StackProgram
from tests.numpy_jaxpr import on_numpy
from tests.programs.random_programs import PlainArray, RandomProgram, load, load_plain

VARIANTS: tuple[dict[str, str], ...] = (
    {},
    {"schedule": "sweep", "emitter": "mask"},
    {"schedule": "earliest", "emitter": "port"},
    {"schedule": "largest", "emitter": "guard"},
    {"strategy": "local"},
    {"schedule": "sweep", "emitter": "guard"},
    {"schedule": "largest", "emitter": "port"},
    {"schedule": "earliest", "emitter": "mask"},
)

Leaves = list[Any]
_serial = itertools.count()


class Mismatch(AssertionError):
    """A stage that does not mean what the stage before it meant."""


@dataclass(frozen=True, slots=True)
class Case:
    """A program with inputs for some lanes, its batched function, and what plain Python says."""

    program: RandomProgram
    args: tuple[np.ndarray, ...]
    entry: Any
    expected: tuple[Leaves, ...]  # per lane

    @property
    def lanes(self) -> int:
        """How many examples there are."""
        return len(self.expected)


def leaves(result: Any) -> Leaves:
    """The parts of what a program returns: numbers and arrays, or tuples of them."""
    return [leaf for part in result for leaf in leaves(part)] if isinstance(result, tuple) else [result]


def prepare(program: RandomProgram, seed: int, lanes: int) -> Case:
    """Load a program and run it plainly on every lane."""
    number = next(_serial)
    name = f"<random program {number}>"
    linecache.cache.pop(f"<random program {number - 100}>", None)
    args = program.arguments(seed, lanes)
    plain = load_plain(program.text, name)
    expected = tuple(leaves(plain(*(_example(arg[k]) for arg in args))) for k in range(lanes))
    return Case(program, args, load(program.text, name), expected)


def _example(value: Any) -> Any:
    """What a user would pass to the plain function."""
    return value.view(PlainArray) if value.ndim else value.item()


def check_stages(case: Case) -> dict[str, set[str]]:
    """Interpret every stage; gives the blocks that ran in each. The pipeline has verified the stages."""
    stages = case.entry.lower(*case.args).stages
    named = {"cfg": stages.cfg, "optimised cfg": stages.optimised_cfg, "stack": stages.stack, "opt": stages.opt}
    return {name: _check_stage(case, name, stage) for name, stage in named.items()}


def _check_stage(case: Case, name: str, stage: CfgProgram | StackProgram) -> set[str]:
    program = on_numpy(stage)
    ran: set[str] = set()
    with np.errstate(all="ignore"):
        for k, want in enumerate(case.expected):
            example = [arg[k] for arg in case.args]
            if isinstance(program, CfgProgram):
                results, trace = interpret_cfg(program, example)
            else:
                results, trace = interpret_stack(program, example)
            _compare(f"stage {name}, lane {k}", results, want)
            ran.update(trace.blocks)
    return ran


def check_jax(case: Case, options: Mapping[str, Any]) -> None:
    """Run the batch with some options."""
    result = case.entry.with_options(**options)(*case.args)
    columns = [np.asarray(leaf) for leaf in leaves(result)]
    for k, want in enumerate(case.expected):
        _compare(f"JAX with {dict(options)}, lane {k}", [column[k] for column in columns], want)


def _compare(where: str, got: Sequence[Any], want: Leaves) -> None:
    if len(got) != len(want) or not all(map(np.array_equal, got, want)):
        raise Mismatch(f"{where}: {list(got)} instead of {want}")
