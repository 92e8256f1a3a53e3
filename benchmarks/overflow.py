"""Cost of `numbers="python"` against `numbers="jax"`: programs of one example with integers of Python.

    NPROC=1 python -m benchmarks.overflow [--lanes 256] [--repeats 7] [--only sudoku]

The fourteen of `benchmarks/cpython_programs/classics.py` and the twenty-one of `benchmarks/fifty_lines`, each compiled
both ways, in one process, in turn. CPU seconds of the process; a ratio is the median of pairs, so 1.05 is five per cent
slower. Lanes that end are those in which an integer does not fit, where the other way they go on wrapped.
"""

from __future__ import annotations

import argparse
import os
import random
import statistics
from collections.abc import Callable
from typing import Any

os.environ.setdefault("NPROC", "1")

import jax
import numpy as np

import pcbatch
from benchmarks.common import paired_cpu
from benchmarks.cpython_programs.classics import PROGRAMS as SHORT
from benchmarks.fifty_lines import PROGRAMS as LONG
from tests.strangers.rows import argument

HEAD = "| program | wrap ms | fail ms | ratio | lanes that end |"


def programs(lanes: int) -> dict[str, tuple[Callable[..., Any], tuple[Any, ...]]]:
    """Return functions of one example with arguments for all lanes, by name."""
    found = {}
    for program in SHORT:
        examples = program.examples(random.Random(0), lanes)
        found[program.name] = program.function, tuple(argument(values) for values in zip(*examples, strict=True))
    return found | {name: (program.function, program.arguments(lanes)) for name, program in LONG.items()}


def main() -> None:
    """Print a line for each program, and the median of the ratios."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--lanes", type=int, default=256)
    parser.add_argument("--repeats", type=int, default=7)
    parser.add_argument("--only", default="", help="the programs with this in their name")
    given = parser.parse_args()
    print(HEAD, "|---|---:|---:|---:|---:|", sep="\n")
    ratios = []
    for name, (function, arguments) in programs(given.lanes).items():
        if given.only.lower() not in name.lower():
            continue
        wrap, fail = (pcbatch.batch(function, numbers=way).run for way in ("jax", "python"))
        ended = int(np.sum(np.asarray(fail(*arguments).status) == int(pcbatch.Status.LIMIT)))
        pair = paired_cpu(lambda: fail(*arguments).value, lambda: wrap(*arguments).value, given.repeats)  # noqa: B023
        ratios.append(pair[2])
        print(f"| {name} | {pair[1] * 1e3:.2f} | {pair[0] * 1e3:.2f} | {pair[2]:.2f} | {ended} |", flush=True)
        jax.clear_caches()
    print(f"| median | | | {statistics.median(ratios):.3f} | |")


if __name__ == "__main__":
    main()
