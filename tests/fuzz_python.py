"""Random programs in plain Python: `python -m tests.fuzz_python --count 100 --seed 0 --jax 10`.

Each seed stands for one program. A failing one is reduced to few lines before it is printed.
"""

from __future__ import annotations

import argparse
import gc
import random
import sys
import time
import traceback
import warnings
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field

import jax
import numpy as np

from tests import conftest  # noqa: F401  (the same flags as in the suite, before JAX starts)
from tests.oracles.interpreters import VARIANTS
from tests.oracles.python_programs import Endless, Refused, check_jax, check_stages, prepare
from tests.oracles.reduce_program import reduced
from tests.programs.container_programs import TAPE, PythonProgram, program_of

STAGE_LANES = 5
JAX_LANES = 6
USUAL = "no failure"


@dataclass(slots=True)
class Tally:
    """What came of the programs."""

    counts: Counter[str] = field(default_factory=Counter)
    refused: Counter[str] = field(default_factory=Counter)
    titles: Counter[str] = field(default_factory=Counter)
    failing: list[tuple[int, str]] = field(default_factory=list)


def drawn(seed: int) -> PythonProgram:
    """The program of a seed."""
    return program_of(random.Random(seed).randbytes(TAPE))


def through_interpreters(program: PythonProgram, seed: int) -> None:
    """Plain Python and the interpreters of all stages."""
    check_stages(prepare(program, seed, STAGE_LANES))


def through_jax(program: PythonProgram, seed: int) -> None:
    """What JAX runs."""
    case = prepare(program, seed, JAX_LANES)
    with jax.numpy_dtype_promotion("standard"):
        check_jax(case, VARIANTS[seed % len(VARIANTS)], np.random.default_rng(seed))


def outcome(program: PythonProgram, seed: int, by_jax: bool) -> str:
    """What comes of a program, in a few words: "same", "endless", a code, or the failure."""
    try:
        with jax.numpy_dtype_promotion("standard"):
            (through_jax if by_jax else through_interpreters)(program, seed)
    except Endless:
        return "endless"
    except Refused as refused:
        return f"{refused.code}: {refused.title}"
    except Exception as error:
        return f"failure {type(error).__name__}: {error}\n{''.join(traceback.format_exc().splitlines(True)[-12:])}"
    return "same"


def run(seed: int, by_jax: bool, tally: Tally, as_is: bool) -> None:
    """One seed."""
    program = drawn(seed)
    came = outcome(program, seed, by_jax)
    kind = came.split(" ", 1)[0]
    if kind == "failure":
        tally.counts["failed"] += 1
        tally.failing.append((seed, "jax" if by_jax else "interpreters"))
        if not as_is:
            first = came.split(":", 1)[0]
            program = reduced(program, lambda p: outcome(p, seed, by_jax).split(":", 1)[0] == first)
            came = outcome(program, seed, by_jax)
        print(f"\nseed {seed}, {tally.failing[-1][1]}: {came}\n{program}", flush=True)
    elif kind.startswith("PCB"):
        tally.counts["refused"] += 1
        tally.refused[kind.rstrip(":")] += 1
        tally.titles[came] += 1
    else:
        tally.counts[came] += 1


def explore(first: int, count: int, by_jax: bool, as_is: bool, seconds: float = float("inf")) -> Tally:
    """Run so many seeds."""
    tally, started = Tally(), time.monotonic()
    gc.disable()
    for seed in range(first, first + count):
        if time.monotonic() - started > seconds:
            break
        run(seed, by_jax, tally, as_is)
        if seed % 25 == 0:
            jax.clear_caches()
            gc.collect()
        if seed % 100 == 99:
            print(f"{time.monotonic() - started:,.0f} s, to {seed}: {dict(tally.counts)}", flush=True)
    gc.enable()
    return tally


def report(what: str, tally: Tally, titles: bool) -> None:
    """Print the counts."""
    total = max(1, tally.counts.total())
    print(f"{what}: {tally.counts.total():,} programs: {dict(tally.counts)}; failing seeds {tally.failing}")
    for code, number in tally.refused.most_common():
        print(f"  refused {code}: {number} ({number / total:.1%})")
    if titles:
        for title, number in tally.titles.most_common(60):
            print(f"    {number:4} {title}")


def main(words: Sequence[str] | None = None) -> int:
    """The command line."""
    parser = argparse.ArgumentParser(prog="python -m tests.fuzz_python", description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--seed", type=int, default=0, help="the first seed (default 0)")
    parser.add_argument("--count", type=int, default=100, help="how many programs go through the interpreters")
    parser.add_argument("--jax", type=int, default=0, help="how many programs, of the same seeds, go through JAX")
    parser.add_argument("--seconds", type=float, default=float("inf"), help="how long at most, for each of the two")
    parser.add_argument("--as-is", action="store_true", help="print what fails as it was drawn")
    parser.add_argument("--titles", action="store_true", help="print why programs are refused")
    parser.add_argument("--show", action="store_true", help="print the programs only")
    options = parser.parse_args(words)
    warnings.simplefilter("error")
    if options.show:
        for seed in range(options.seed, options.seed + options.count):
            print(f"seed {seed}, {drawn(seed)}")
        return 0
    failed = 0
    for by_jax, count in ((False, options.count), (True, options.jax)):
        if count:
            tally = explore(options.seed, count, by_jax, options.as_is, options.seconds)
            report("JAX" if by_jax else "interpreters", tally, options.titles)
            failed += len(tally.failing)
    return int(failed > 0)


if __name__ == "__main__":
    sys.exit(main())
