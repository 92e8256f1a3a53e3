"""Runs whose last lanes go on in a narrower machine, against runs of one machine: loops of unequal length.

    NPROC=1 python -m benchmarks.narrowing [--lanes 64 256 1024] [--shapes flat] [--costs expensive]

The programs are those of `benchmarks/break_even.py`. A cell has the CPU milliseconds of a call in one machine
(`narrow=False`), and the times of `narrow=None` (by cost) and `narrow=True` as shares of that; then the CPU seconds of
the first calls. One thread, medians, all ways in turn; results are compared before anything is timed.
"""

from __future__ import annotations

import argparse
import os
import time
from collections.abc import Sequence
from typing import Any

import jax
import numpy as np

import pcbatch
from benchmarks.break_even import COSTS, SHAPES, SPREADS, Cost, Shape, inputs
from benchmarks.common import interleaved_cpu_medians

LANES = (64, 256, 1024)
WAYS = (False, None, True)


def cell(shape: Shape, cost: Cost, spread: str, lanes: int, repeats: int) -> str:
    """Measure one program with one kind of inputs."""
    given = inputs(shape, cost, spread, lanes)
    ways = {way: pcbatch.batch(shape.ours(cost.block), plan=pcbatch.Plan(narrow=way)) for way in WAYS}
    found: list[Any] = []
    first = []
    for f in ways.values():
        start = time.process_time()
        found.append(jax.block_until_ready(f(*given)))
        first.append(time.process_time() - start)
    for other in found[1:]:
        for mine, theirs in zip(jax.tree.leaves(found[0]), jax.tree.leaves(other), strict=True):
            np.testing.assert_allclose(mine, theirs, rtol=1e-3, atol=1e-3)
    calls = {str(way): lambda f=f: f(*given) for way, f in ways.items()}
    one, *others = interleaved_cpu_medians(calls, repeats).values()
    shares = ", ".join(f"{other / one:.2f}" for other in others)
    return f"{1e3 * one:.2f}: {shares} ({', '.join(f'{seconds:.1f}' for seconds in first)})"


def main(arguments: Sequence[str] | None = None) -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--lanes", type=int, nargs="*", default=LANES)
    parser.add_argument("--shapes", nargs="*", choices=SHAPES, default=list(SHAPES))
    parser.add_argument("--costs", nargs="*", choices=COSTS, default=list(COSTS))
    parser.add_argument("--spreads", nargs="*", choices=SPREADS, default=["equal", "long tail"])
    parser.add_argument("--repeats", type=int, default=5)
    options = parser.parse_args(arguments)
    print("ms in one machine: shares of that by cost, always (CPU seconds of the first calls)\n")
    print(f"| | {' | '.join(f'{count} lanes' for count in options.lanes)} |\n|---{'|---' * len(options.lanes)}|")
    for shape in options.shapes:
        for cost in options.costs:
            for spread in options.spreads:
                cells = [cell(SHAPES[shape], COSTS[cost], spread, n, options.repeats) for n in options.lanes]
                print(f"| {shape}, {cost}, {spread} | {' | '.join(cells)} |", flush=True)


if __name__ == "__main__":
    os.environ.setdefault("NPROC", "1")
    main()
