"""Floats that are rounded as in Python, next to those that XLA makes of the same program.

    NPROC=1 python -m benchmarks.rounding [--lanes 256 2048] [--repeats 7]

Programs on floats, of `benchmarks/cpython_programs` and two of a few products and sums, in 64 bits: CPU seconds of
either form, in turn, how many times as long the rounded one takes, and in how many lanes the results of each differ
from those of plain Python, in any bit.
"""

from __future__ import annotations

import argparse
import os
import random
from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from functools import partial
from typing import Any
from unittest.mock import patch

os.environ.setdefault("NPROC", "1")

import jax
import numpy as np

import pcbatch
from benchmarks.common import interleaved_cpu_medians
from benchmarks.cpython_programs import PROGRAMS, Program
from pcbatch.data import rounding
from tests.strangers.rows import argument, as_plain, lane_of

NAMES = (
    "Mandelbrot",
    "Newton",
    "adaptive Simpson",
    "Brent",
    "FFT",
    "simplex",
    "Gaussian",
    "ray marching",
    "Barnes-Hut",
)


def logistic(r):
    """Three hundred steps of the logistic map."""
    x = 0.3
    for _ in range(300):
        x = r * x * (1 - x)
    return x


def rectangles(a, b):
    """The integral of 1 / (1 + x * x) by two hundred rectangles."""
    total, width = 0.0, (b - a) / 200
    for k in range(200):
        x = a + k * width
        total += 1 / (1 + x * x) * width
    return total


SHORT = [
    Program("logistic map", logistic, lambda rng, n: [(rng.uniform(3, 3.9),) for _ in range(n)]),
    Program("integral", rectangles, lambda rng, n: [(rng.random(), 1 + rng.random()) for _ in range(n)]),
]


def as_xla_likes() -> AbstractContextManager[Any]:
    """Return the context in which operators are left to XLA while programs are compiled."""
    return patch.object(rounding, "SIGNS", frozenset())


def compiled(program: Program, columns: list[Any], context: AbstractContextManager[Any]) -> Callable[..., Any]:
    """Return the batched function, compiled within a context."""
    batched = pcbatch.batch(program.function)
    with context:
        batched(*columns)
    return batched


def differing(program: Program, examples: list[tuple[Any, ...]], found: Any) -> int:
    """Return the number of lanes whose result is not that of plain Python."""
    plain = [program.function(*one) for one in examples]
    return sum(repr(as_plain(lane_of(found, k))) != repr(as_plain(want)) for k, want in enumerate(plain))


def main(argv: list[str] | None = None) -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--lanes", type=int, nargs="+", default=[256, 2048])
    parser.add_argument("--repeats", type=int, default=7)
    given = parser.parse_args(argv)
    jax.config.update("jax_enable_x64", True)
    chosen = [program for program in PROGRAMS if program.name.startswith(NAMES)] + SHORT
    print("| program | lanes | as XLA likes, ms | as Python, ms | times as long | lanes that differ, XLA | Python |")
    print("|---|---:|---:|---:|---:|---:|---:|")
    ratios = []
    for lanes in given.lanes:
        for program in chosen:
            examples = program.examples(random.Random(0), lanes)
            columns = [argument(list(values)) for values in zip(*examples, strict=True)]
            forms = {
                "xla": compiled(program, columns, as_xla_likes()),
                "python": compiled(program, columns, nullcontext()),
            }
            differ = [differing(program, examples, form(*columns)) for form in forms.values()]
            calls = {name: partial(form, *columns) for name, form in forms.items()}
            medians = interleaved_cpu_medians(calls, given.repeats)
            ratios.append(medians["python"] / medians["xla"])
            times = f"{medians['xla'] * 1e3:.2f} | {medians['python'] * 1e3:.2f} | {ratios[-1]:.2f}"
            print(f"| {program.name} | {lanes} | {times} | {differ[0]} | {differ[1]} |", flush=True)
    print(f"geometric mean: {np.exp(np.mean(np.log(ratios))):.2f} times as long")


if __name__ == "__main__":
    main()
