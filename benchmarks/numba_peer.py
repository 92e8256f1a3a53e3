"""Lanes of pcbatch against a loop over examples that Numba compiles, on one thread.

    NPROC=1 python -m benchmarks.numba_peer [--quick] [--lanes 16 1024 16384] [--only queens]

Both sides compile the function as it stands here: Numba with `@njit`, every helper too, called in an `@njit` loop over
the examples; pcbatch with all examples in one call. Results are compared before anything is timed: they are equal, but
for one Mandelbrot point in a hundred, since Numba's numbers have 64 bits and those of lanes 32 (64 on both sides with
JAX_ENABLE_X64=1). CPU seconds of the process, in turn, each over as many calls as take 50 ms; a ratio is Numba's median
over ours, so above 1 lanes are faster. First calls, compiling included, have a table of their own, in CPU seconds too.
`--quick` takes three repeats. Without Numba the columns of pcbatch are printed alone.
"""

from __future__ import annotations

import argparse
import math
import os
import random
import time
import types
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

os.environ.setdefault("NPROC", "1")

import jax
import numpy as np

import pcbatch
from benchmarks.common import interleaved_cpu_medians
from benchmarks.cpython import must_agree
from benchmarks.cpython_programs import classics
from benchmarks.cpython_programs.program import Program, entering
from tests.strangers.rows import argument

try:
    import numba
except ImportError:
    numba = None

LANES = (16, 1024, 16384)
MISSING = "numba is not installed here (`pip install numba`, where it supports this Python and NumPy): pcbatch alone"
HEAD = "| program | lanes | Numba ms | pcbatch ms | times as fast |"

CLASSICS = (classics.fib, classics.collatz, classics.queens, classics.sudoku, classics.mandelbrot)
PROGRAMS: list[Program] = [program for program in classics.PROGRAMS if program.function in CLASSICS]


@entering(PROGRAMS)("random walk to a barrier", lambda rng: (rng.randint(1, 65000),))
def walk(seed):
    position = steps = 0
    while -10 < position < 10 and steps < 1000:
        seed = (seed * 75 + 74) % 65537
        if seed > 32768:
            position += 1
        else:
            position -= 1
        steps += 1
    return steps


@dataclass(frozen=True, slots=True)
class Measured:
    """Seconds of a call with all examples, and of the first one; Numba's are None where it is not installed."""

    name: str
    lanes: int
    ours: float
    first: float
    numba: float | None = None
    numba_first: float | None = None

    @property
    def ratio(self) -> float:
        """How many times as fast as Numba the lanes are."""
        return self.numba / self.ours if self.numba is not None else math.nan

    def line(self) -> str:
        """Return the line of the table of times."""
        theirs = None if self.numba is None else self.numba * 1e3
        cells = (self.name, str(self.lanes), _number(theirs, 3), _number(self.ours * 1e3, 3), _number(self.ratio, 3))
        return f"| {' | '.join(cells)} |"


def by_numba(function: Callable[..., Any]) -> Callable[..., Any]:
    """Return a loop over examples, compiled by Numba at its first call, that calls a function compiled along."""
    names = {**function.__globals__}
    for name, helper in function.__globals__.items():
        if isinstance(helper, types.FunctionType) and helper.__module__ == function.__module__:
            names[name] = numba.njit(types.FunctionType(helper.__code__, names, name, helper.__defaults__))
    compiled = names[function.__name__]

    @numba.njit
    def loop_of_one(xs):
        out = np.empty(len(xs), np.int64)
        for k in range(len(xs)):
            out[k] = compiled(xs[k])
        return out

    @numba.njit
    def loop_of_two(xs, ys):
        out = np.empty(len(xs), np.int64)
        for k in range(len(xs)):
            out[k] = compiled(xs[k], ys[k])
        return out

    return loop_of_one if function.__code__.co_argcount == 1 else loop_of_two


def check(name: str, ours: Any, theirs: Any) -> None:
    """Raise SystemExit unless the lanes are equal, or as many of them as rounding leaves so."""
    least = must_agree(name)
    equal = float(np.mean(np.asarray(ours) == np.asarray(theirs)))
    if equal < least:
        raise SystemExit(f"{name}: {equal:.1%} of the lanes are equal, and {least:.0%} must be: nothing to measure")


def first_call(call: Callable[[], Any]) -> tuple[float, Any]:
    """Return the CPU seconds of a call that compiles, and what it gives."""
    start = time.process_time()
    found = jax.block_until_ready(call())
    return time.process_time() - start, found


def measure(program: Program, lanes: int, repeats: int) -> Measured:
    """Run one program on both sides, compare the results, and time it."""
    columns = [list(values) for values in zip(*program.examples(random.Random(0), lanes), strict=True)]
    ours, inputs = pcbatch.batch(program.function), [argument(values) for values in columns]
    first, found = first_call(lambda: ours(*inputs))
    calls = {"ours": lambda: ours(*inputs)}
    if numba is None:
        return Measured(program.name, lanes, interleaved_cpu_medians(calls, repeats)["ours"], first)
    theirs, arrays = by_numba(program.function), [np.array(values) for values in columns]
    numba_first, wanted = first_call(lambda: theirs(*arrays))
    check(program.name, found, wanted)
    medians = interleaved_cpu_medians(calls | {"numba": lambda: theirs(*arrays)}, repeats)
    return Measured(program.name, lanes, medians["ours"], first, medians["numba"], numba_first)


def means(rows: Sequence[Measured]) -> list[str]:
    """Return the geometric mean of the ratios for each number of lanes, as lines of the table."""
    lines = []
    for lanes in dict.fromkeys(row.lanes for row in rows):
        ratios = [row.ratio for row in rows if row.lanes == lanes]
        mean = math.exp(sum(map(math.log, ratios)) / len(ratios))
        lines.append(f"| geometric mean | {lanes} | | | {_number(mean, 3)} |")
    return lines


def first_calls(rows: Sequence[Measured]) -> list[str]:
    """Return the table of the first calls, compiling included: Numba's with the fewest lanes, ours with all numbers."""
    widths = list(dict.fromkeys(row.lanes for row in rows))
    lines = [f"| first call, CPU s | Numba | {' | '.join(f'pcbatch, {lanes} lanes' for lanes in widths)} |"]
    lines.append("|---|" + "---:|" * (len(widths) + 1))
    for name in dict.fromkeys(row.name for row in rows):
        mine = [row for row in rows if row.name == name]
        cells = [_number(mine[0].numba_first, 1), *(_number(row.first, 1) for row in mine)]
        lines.append(f"| {name} | {' | '.join(cells)} |")
    return lines


def _number(value: float | None, digits: int) -> str:
    return "" if value is None or math.isnan(value) else f"{value:.{digits}f}"


def main(arguments: Sequence[str] | None = None) -> None:
    """Print both tables."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--lanes", type=int, nargs="+", default=LANES)
    parser.add_argument("--only", default="", help="the programs with this in their name")
    parser.add_argument("--repeats", type=int, help="rounds of each side; 7, or 3 with --quick")
    parser.add_argument("--quick", action="store_true", help="three repeats")
    given = parser.parse_args(arguments)
    if numba is None:
        print(MISSING)
    print(HEAD, "|---|---:|---:|---:|---:|", sep="\n")
    rows = []
    for program in PROGRAMS:
        if given.only.lower() in program.name.lower():
            for lanes in given.lanes:
                rows.append(measure(program, lanes, given.repeats or (3 if given.quick else 7)))
                print(rows[-1].line(), flush=True)
            jax.clear_caches()
    print(*means(rows), "", *first_calls(rows), sep="\n")


if __name__ == "__main__":
    main()
