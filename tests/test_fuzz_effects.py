"""Random programs that print and fail, against plain Python: what each lane prints, in which order, and how it ends.

Explore with `python -m tests.test_fuzz_effects FIRST COUNT [SIZE]`.
"""

from __future__ import annotations

import contextlib
import io
import re
import sys
from collections.abc import Callable
from typing import Any

import jax
import numpy as np
import pytest

import pcbatch
from pcbatch import pipeline
from pcbatch.ir.cfg import CfgProgram
from pcbatch.ir.interpret import LaneFailed, interpret_cfg, interpret_stack
from pcbatch.ir.verifier import verify
from tests.programs.compare import status_of
from tests.programs.effect_programs import load, random_source

VARIANTS = (
    {},
    {"schedule": "sweep", "emitter": "mask"},
    {"schedule": "earliest", "emitter": "port"},
    {"schedule": "largest", "emitter": "guard"},
    {"strategy": "local"},
)

LANES = 5  # as many as a message lists

Ending = tuple[Any, str]  # a result or an exception, and what was printed


def ending(run: Callable[[], Any]) -> Ending:
    """How one lane ends."""
    with contextlib.redirect_stdout(io.StringIO()) as written:
        try:
            outcome = tuple(int(leaf) for leaf in jax.tree.leaves(run()))
        except (AssertionError, ValueError, LaneFailed) as error:
            outcome = (error.name, error.message) if isinstance(error, LaneFailed) else error
    return outcome, written.getvalue()


def check(seed: int, size: int, variants: tuple[dict[str, str], ...]) -> None:
    """Every stage and the given ways to run it agree with plain Python."""
    text = random_source(seed, size, effects=True)
    entry = load(text, f"<random program {seed} with effects, size {size}>")
    rng = np.random.default_rng(seed)
    args = tuple(rng.integers(0, top, LANES).astype(np.int32) for top in (30, 30, 4))
    want = [ending(lambda k=k: entry.plain(*(int(arg[k]) for arg in args))) for k in range(LANES)]
    for name, stage in pipeline.stages(entry, args).items():
        assert verify(stage) == (), f"{name}\n{text}"
        interpret: Any = interpret_cfg if isinstance(stage, CfgProgram) else interpret_stack
        for k, (outcome, printed) in enumerate(want):
            found = ending(lambda k=k, stage=stage: interpret(stage, [arg[k] for arg in args])[0])
            plain = (type(outcome).__name__, str(outcome)) if isinstance(outcome, Exception) else outcome
            assert found == (plain, printed), f"stage {name}, lane {k}\n{text}"
    for options in variants:
        compare(entry.with_options(**options), args, want, f"{options}\n{text}")


def compare(batched: Any, args: tuple[Any, ...], want: list[Ending], about: str) -> None:
    """One way to run the batch against plain Python."""
    with contextlib.redirect_stdout(io.StringIO()) as written:
        result = batched.run(*args)
    assert np.asarray(result.status).tolist() == [status_of(outcome) for outcome, _ in want], about
    lines = written.getvalue().splitlines()
    for k, (outcome, printed) in enumerate(want):
        mine = [line.removeprefix(f"[lane {k}] ") for line in lines if line.startswith(f"[lane {k}] ")]
        assert mine == printed.splitlines(), f"lane {k} of {about}"
        if not isinstance(outcome, Exception):
            assert tuple(int(leaf[k]) for leaf in result.value) == outcome, f"lane {k} of {about}"
    failed = [(k, str(outcome)) for k, (outcome, _) in enumerate(want) if isinstance(outcome, Exception)]
    if failed:
        with contextlib.redirect_stdout(io.StringIO()), pytest.raises(pcbatch.BatchRuntimeError) as info:
            batched(*args)
        for k, message in failed:
            where = f"{k} (a={args[0][k]}, b={args[1][k]}, fuel={args[2][k]}"
            said = re.compile(re.escape(where) + r"[^)]*\): " + re.escape(message) + "\n")
            titles = [found.title for found in info.value.diagnostics]  # a constant message stands there
            shown = said.search(str(info.value)) or any(title.endswith(message) for title in titles)
            assert shown and where in str(info.value), about


@pytest.mark.parametrize("seed", range(15))
def test_random_program(seed: int) -> None:
    check(seed, 10, (VARIANTS[seed % 4], VARIANTS[4]))


def explore(first: int, count: int, size: int) -> None:
    """Print the failing seeds."""
    for seed in range(first, first + count):
        try:
            check(seed, size, VARIANTS)
        except Exception as error:
            print(f"seed {seed}, size {size}: {type(error).__name__}: {str(error)[:3000]}", flush=True)
            break


if __name__ == "__main__":
    numbers = [int(text) for text in sys.argv[1:]]
    explore(numbers[0], numbers[1], numbers[2] if len(numbers) > 2 else 12)
