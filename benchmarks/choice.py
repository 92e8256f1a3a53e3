"""The choice of plain calls between lanes together and one lane after the other, against both.

    NPROC=1 python -m benchmarks.choice [--lanes 16 256 4096] [--repeats 5] [--only sudoku]

The fourteen of `benchmarks/cpython_programs/classics.py`, the twenty-one of `benchmarks/fifty_lines` and the eight of
`benchmarks/heavy_rounds.py`. CPU seconds of the process, in turn; `over the best` is the time of the choice over that
of the faster one. First calls, compiling included, are CPU seconds too.
"""

from __future__ import annotations

import argparse
import os
import statistics
import time
from typing import Any

os.environ.setdefault("NPROC", "1")

import jax

import pcbatch
from benchmarks import heavy_rounds, overflow
from benchmarks.common import interleaved_cpu_medians
from pcbatch import Plan
from pcbatch.runtime.scalar import ScalarMachine, worth

WAYS = {"chosen": Plan(), "scalar": Plan(emitter="scalar"), "together": Plan(emitter="guard")}
HEAD = (
    "| program | lanes | chosen | scalar ms | together ms | over the best | together over scalar, estimated, measured "
    "| first call s, scalar, together |"
)


def main() -> None:
    """Print a line for each program and number of lanes, and the median and the greatest of the ratios."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--lanes", type=int, nargs="+", default=[16, 256, 4096])
    parser.add_argument("--repeats", type=int, default=5)
    parser.add_argument("--only", default="", help="the programs with this in their name")
    given = parser.parse_args()
    print(HEAD, "|---|---:|---|---:|---:|---:|---|---:|", sep="\n")
    ratios = []
    for lanes in given.lanes:
        for name, (function, arguments) in (overflow.programs(lanes) | heavy_rounds.programs(lanes)).items():
            if given.only.lower() in name.lower():
                line, ratio = row(name, lanes, function, arguments, given.repeats)
                ratios.append(ratio)
                print(line, flush=True)
                jax.clear_caches()
    if ratios:
        print(f"| all | | | | | median {statistics.median(ratios):.2f}, at most {max(ratios):.2f} | | |")


def row(name: str, lanes: int, function: Any, arguments: tuple[Any, ...], repeats: int) -> tuple[str, float]:
    """Return a line of the table for one program, and the time of the choice over that of the faster way."""
    runs: dict[str, Any] = {}
    first: dict[str, float] = {}
    for way, plan in WAYS.items():
        batched = pcbatch.batch(function, plan=plan)
        start = time.process_time()
        jax.block_until_ready(batched.run(*arguments).status)
        first[way] = time.process_time() - start
        runs[way] = batched
    (machine, *_) = (p.executable.machine for p in reversed(runs["chosen"]._programs.cache.values()))
    alone = isinstance(machine, ScalarMachine)
    medians = interleaved_cpu_medians({way: _call(runs[way], arguments) for way in WAYS}, repeats)
    same = medians["scalar" if alone else "together"]
    ratio = same / min(medians["scalar"], medians["together"])
    cells = (name, str(lanes), "scalar" if alone else "together", f"{medians['scalar'] * 1e3:.2f}")
    estimated = f"{_estimated(runs['scalar'], lanes):.2f}, {medians['together'] / medians['scalar']:.2f}"
    more = (
        f"{medians['together'] * 1e3:.2f}",
        f"{ratio:.2f}",
        estimated,
        f"{first['scalar']:.1f}, {first['together']:.1f}",
    )
    return f"| {' | '.join((*cells, *more))} |", ratio


def _estimated(batched: Any, lanes: int) -> float:
    """Return the estimated time of lanes together over that of lanes one after the other."""
    (program, *_) = reversed(batched._programs.cache.values())
    return worth.times(program.executable.costs, program.stages.schedule, lanes)


def _call(batched: Any, arguments: tuple[Any, ...]) -> Any:
    return lambda: jax.block_until_ready(batched.run(*arguments).status)


if __name__ == "__main__":
    main()
