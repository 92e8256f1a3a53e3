"""Programs that people write for one example, against plain CPython in a loop over the same examples.

    NPROC=1 python -m benchmarks.cpython [--quick] [--lanes 32 256 2048] [--only sudoku] [--emitter scalar]
    NPROC=2 python -m benchmarks.cpython --wall --lanes 2048

Both sides run the function as it stands in `benchmarks/cpython_programs/`, on the same core: CPython example after
example, pcbatch all lanes in one call. Results are compared before anything is timed. CPU seconds of the process, in
turn, each over as many calls as take 50 ms; a ratio is CPython's median over ours, so above 1 lanes are faster. The
first call, compiling included, is the clock's. `--quick` takes 256 lanes and three repeats. `--wall` takes all times
from the clock on the wall: on several cores, to which calls of much work deal their lanes, it needs an idle machine.
"""

from __future__ import annotations

import argparse
import copy
import math
import os
import random
import statistics
import time
from collections.abc import Sequence
from dataclasses import dataclass

os.environ.setdefault("NPROC", "1")

import jax

import pcbatch
from benchmarks.common import Clock, interleaved_cpu_medians, timed
from benchmarks.cpython_programs import PROGRAMS, Program
from tests.strangers.rows import alike, argument, as_plain, lane_of

LANES = (32, 256, 2048)
HEAD = "| program | lanes | CPython ms | pcbatch ms | times as fast | first call s |"


@dataclass(frozen=True, slots=True)
class Measured:
    """One row of the table: seconds of all examples on either side, and of the first call."""

    name: str
    lanes: int
    plain: float
    ours: float
    first: float

    @property
    def ratio(self) -> float:
        """How many times as fast as CPython the lanes are."""
        return self.plain / self.ours

    def line(self) -> str:
        """Return the line of the table."""
        times = f"{self.plain * 1e3:.2f} | {self.ours * 1e3:.2f}"
        return f"| {self.name} | {self.lanes} | {times} | {self.ratio:.2f} | {self.first:.1f} |"


def measure(
    program: Program, lanes: int, repeats: int, emitter: str = "auto", clock: Clock = time.process_time
) -> Measured:
    """Run one program on both sides, compare the results, and time it."""
    examples = program.examples(random.Random(0), lanes)
    columns = [argument(values) for values in zip(*examples, strict=True)]
    batched = pcbatch.batch(program.function, plan=pcbatch.Plan(emitter=emitter))
    first, found = timed(lambda: batched(*columns))
    check(program, examples, found)
    medians = interleaved_cpu_medians(
        {"plain": lambda: [program.function(*one) for one in examples], "lanes": lambda: batched(*columns)},
        repeats,
        clock,
    )
    return Measured(program.name, lanes, medians["plain"], medians["lanes"], first)


def must_agree(name: str) -> float:
    """Return the share of lanes that must be equal on both sides: all, but where floats decide how often loops go
    round, since those of Python have 64 bits and those of lanes 32."""
    return 0.99 if name.startswith("Mandelbrot") else 1.0


def check(program: Program, examples: Sequence[tuple[object, ...]], found: object) -> None:
    """Raise SystemExit unless lanes have what plain Python gives, floats to rounding, and change no argument, since
    what is timed runs them again."""
    others: list[str] = []
    for lane, example in enumerate(examples):
        given = copy.deepcopy(example)
        want = as_plain(program.function(*given))
        if given != example:
            raise SystemExit(f"{program.name}: lane {lane} changes its arguments")
        got = as_plain(lane_of(found, lane))
        if not alike(got, want, 1e-3):
            others.append(f"lane {lane} of {example} gives {got!r} instead of {want!r}")
    if len(others) > (1 - must_agree(program.name)) * len(examples):
        raise SystemExit(f"{program.name}: {others[0]}")


def summary(rows: Sequence[Measured]) -> list[str]:
    """Return the last lines of a table: the mean of the ratios, how many are low, and the first calls."""
    ratios, first, lanes = [row.ratio for row in rows], [row.first for row in rows], rows[0].lanes
    mean = math.exp(sum(map(math.log, ratios)) / len(ratios))
    slowest = max(rows, key=lambda row: row.first)
    low = [f"below {least} times: {sum(ratio < least for ratio in ratios)} of {len(rows)}" for least in (1, 2)]
    calls = f"median {statistics.median(first):.1f}, at most {slowest.first:.1f} ({slowest.name})"
    return [
        f"| geometric mean | {lanes} | | | {mean:.2f} | {', '.join(low)} |",
        f"| first calls | {lanes} | | | | {calls} |",
    ]


def main() -> None:
    """Print the table, and for each number of lanes a summary."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--lanes", type=int, nargs="+", help="numbers of lanes; 32, 256 and 2048 unless given")
    parser.add_argument("--only", default="", help="the programs with this in their name")
    parser.add_argument("--repeats", type=int, help="rounds of each side; 7, or 3 with --quick")
    parser.add_argument("--emitter", default="auto", help="the option of ours: auto, or scalar")
    parser.add_argument("--quick", action="store_true", help="256 lanes, three repeats")
    parser.add_argument("--wall", action="store_true", help="the clock on the wall instead of CPU seconds")
    given = parser.parse_args()
    clock = time.perf_counter if given.wall else time.process_time
    widths = given.lanes or ((256,) if given.quick else LANES)
    repeats = given.repeats or (3 if given.quick else 7)
    print(HEAD, "|---|---:|---:|---:|---:|---:|", sep="\n")
    for lanes in widths:
        rows = []
        for program in PROGRAMS:
            if given.only.lower() in program.name.lower():
                rows.append(measure(program, lanes, repeats, given.emitter, clock))
                print(rows[-1].line(), flush=True)
                jax.clear_caches()
        if rows:
            print(*summary(rows), sep="\n")


if __name__ == "__main__":
    main()
