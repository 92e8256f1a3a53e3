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
from tests.oracles.python_gradients import check_gradients
from tests.oracles.python_programs import START, Endless, Refused, check_jax, check_stages, prepare
from tests.oracles.reduce_program import reduced
from tests.programs.container_programs import TAPE, PythonProgram, program_of
from tests.programs.evaluation_programs import evaluation_program
from tests.programs.forking_programs import ForkingProgram, forking_program
from tests.programs.small_programs import SmallProgram, small_program

STAGE_LANES = 4
JAX_LANES = 5
SMALL_TAPE = 400  # bytes
KINDS = ("interpreters", "jax", "gradients")
GRAMMARS = ("small", "large", "forks", "order")
ROOMY = 16  # elements that containers have room for at first, where growing is not what is tried
KEPT = {"interpreters": 200, "jax": 20, "gradients": 20}  # programs between two times that caches are emptied
REDUCING = 60.0  # seconds


@dataclass(slots=True)
class Tally:
    """What came of the programs."""

    counts: Counter[str] = field(default_factory=Counter)
    refused: Counter[str] = field(default_factory=Counter)
    titles: Counter[str] = field(default_factory=Counter)
    lines: Counter[int] = field(default_factory=Counter)  # programs by their lines, in tens
    failing: list[tuple[int, str]] = field(default_factory=list)


def drawn(seed: int, grammar: str = "large", smooth: bool = False) -> PythonProgram:
    """The program of a seed."""
    if grammar == "forks":
        return forking_program(seed)
    if grammar == "order":
        return evaluation_program(seed)
    rng = random.Random(seed)
    return program_of(rng.randbytes(TAPE)) if grammar == "large" else small_program(rng.randbytes(SMALL_TAPE), smooth)


def through_interpreters(program: PythonProgram, seed: int) -> bool:
    """Plain Python and the interpreters of all stages; every fourth program begins with little room. Gives whether
    calls may run side by side."""
    small = isinstance(program, SmallProgram | ForkingProgram) and seed % 4
    return check_stages(prepare(program, seed, STAGE_LANES), ROOMY if small else START)


def through_jax(program: PythonProgram, seed: int) -> bool:
    """What JAX runs; programs of independent calls as tasks, where that is possible."""
    options = {"fork": "auto"} if isinstance(program, ForkingProgram) else VARIANTS[seed % len(VARIANTS)]
    check_jax(prepare(program, seed, JAX_LANES), options, np.random.default_rng(seed))
    return False


def derivatives(program: PythonProgram, seed: int) -> bool:
    """Derivatives, one in three of them forward."""
    assert isinstance(program, SmallProgram)
    check_gradients(program, seed, reverse=seed % 3 > 0)
    return False


CHECKS = {"interpreters": through_interpreters, "jax": through_jax, "gradients": derivatives}


def outcome(program: PythonProgram, seed: int, kind: str) -> str:
    """What comes of a program, in a few words: "same", "forks" (the same, and calls may run side by side), "endless", a
    code, or the failure."""
    wide = any(k in ("flt", "flist") for _, k in program.params)
    try:
        with jax.numpy_dtype_promotion("standard"), jax.enable_x64(wide):
            forks = CHECKS[kind](program, seed)
    except Endless:
        return "endless"
    except Refused as refused:
        return f"{refused.code}: {refused.title}"
    except Exception as error:
        return f"failure {type(error).__name__}: {error}\n{''.join(traceback.format_exc().splitlines(True)[-12:])}"
    return "forks" if forks else "same"


def run(seed: int, kind: str, tally: Tally, as_is: bool, grammar: str = "large") -> None:
    """One seed."""
    program = drawn(seed, grammar, kind == "gradients")
    tally.lines[program.text.count("\n") // 10 * 10] += 1
    came = outcome(program, seed, kind)
    word = came.split(" ", 1)[0]
    if word == "failure":
        tally.counts["failed"] += 1
        tally.failing.append((seed, kind))
        if not as_is:
            first = came.split(":", 1)[0]
            program = reduced(program, lambda p: outcome(p, seed, kind).split(":", 1)[0] == first, REDUCING)
            came = outcome(program, seed, kind)
        print(f"\nseed {seed}, {kind}: {came}\n{program}", flush=True)
    elif word.startswith("PCB"):
        tally.counts["refused"] += 1
        tally.refused[word.rstrip(":")] += 1
        tally.titles[came] += 1
    else:
        tally.counts[came] += 1


def explore(
    first: int, count: int, kind: str, as_is: bool, seconds: float = float("inf"), grammar: str = "large"
) -> Tally:
    """Run so many seeds."""
    tally, started, before = Tally(), time.monotonic(), time.process_time()
    gc.disable()
    for seed in range(first, first + count):
        if time.monotonic() - started > seconds:
            break
        run(seed, kind, tally, as_is, grammar)
        if seed % KEPT[kind] == KEPT[kind] - 1:
            jax.clear_caches()
            gc.collect()
        if seed % 100 == 99:
            spent = f"{time.monotonic() - started:,.0f} s, {time.process_time() - before:,.0f} s of a core"
            print(f"{spent}, to {seed}: {dict(tally.counts)}", flush=True)
    gc.enable()
    return tally


def report(what: str, tally: Tally, titles: bool) -> None:
    """Print the counts."""
    total = max(1, tally.counts.total())
    print(f"{what}: {tally.counts.total():,} programs: {dict(tally.counts)}; failing seeds {tally.failing}")
    print(f"  by lines: {dict(sorted(tally.lines.items()))}")
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
    parser.add_argument("--gradients", type=int, default=0, help="of how many programs derivatives are compared")
    parser.add_argument("--grammar", choices=GRAMMARS, default="small", help="which programs (default small)")
    parser.add_argument("--seconds", type=float, default=float("inf"), help="how long at most, for each of the three")
    parser.add_argument("--as-is", action="store_true", help="print what fails as it was drawn")
    parser.add_argument("--titles", action="store_true", help="print why programs are refused")
    parser.add_argument("--show", action="store_true", help="print the programs only")
    options = parser.parse_args(words)
    warnings.simplefilter("error")
    if options.show:
        for seed in range(options.seed, options.seed + options.count):
            print(f"seed {seed}, {drawn(seed, options.grammar)}")
        return 0
    failed = 0
    for kind, count in zip(KINDS, (options.count, options.jax, options.gradients), strict=True):
        if count:
            tally = explore(options.seed, count, kind, options.as_is, options.seconds, options.grammar)
            report(kind, tally, options.titles)
            failed += len(tally.failing)
    return int(failed > 0)


if __name__ == "__main__":
    sys.exit(main())
