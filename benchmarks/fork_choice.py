"""The choice of `fork="auto"` against `"never"`: `NPROC=1 python -m benchmarks.fork_choice [--lanes 1 16 256 2048]`

Recursions whose calls may run side by side: Fibonacci in sums and in frames, adaptive quadrature, queens, sums over
trees of scalars, and the TreeLSTM of `examples.treelstm`. CPU seconds of the process, in turn, medians of the ratios of
pairs; the goal is that `"auto"` is never slower than `"never"` by more than 5 %. Results are compared first.
"""

from __future__ import annotations

import argparse
import os
import random
import statistics
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

os.environ.setdefault("NPROC", "1")

import jax
import jax.numpy as jnp
import numpy as np

import pcbatch
from benchmarks.common import paired_cpu
from benchmarks.recursions import fib, queens
from benchmarks.tasks import halves, integrand, quadrature, simpson
from examples.treelstm.data import generate
from examples.treelstm.model import initial_weights, sentiment

GOAL = 1.05
Call = Callable[[], Any]


@dataclass
class Tree:
    """A number, or the parts of a tree."""

    value: float
    left: Tree | None = None
    right: Tree | None = None


def height_and_sum(tree):
    """The greatest sum of numbers on a way to a leaf, and the sum of all."""
    if tree is None:
        return 0.0, 0.0
    left, left_sum = height_and_sum(tree.left)
    right, right_sum = height_and_sum(tree.right)
    return tree.value + max(left, right), tree.value + left_sum + right_sum


def grown(rng: random.Random, nodes: int) -> Tree | None:
    """Return a random tree."""
    if nodes == 0:
        return None
    left = rng.randrange(nodes)
    return Tree(rng.random(), grown(rng, left), grown(rng, nodes - 1 - left))


def programs(lanes: int) -> Iterator[tuple[str, Any, tuple[Any, ...]]]:
    """Yield names, functions and arguments of so many lanes."""
    rng = np.random.default_rng(0)
    small = jnp.asarray(rng.integers(0, 17, lanes), jnp.int32)
    yield "Fibonacci, sums", fib, (small,)
    yield "Fibonacci, frames", halves, (small,)
    a, b = jnp.zeros(lanes), jnp.asarray(rng.uniform(0.5, 1.0, lanes), jnp.float32)
    values = integrand(a), integrand((a + b) / 2), integrand(b)
    rest = jnp.full(lanes, 1e-5, jnp.float32), jnp.zeros(lanes, jnp.int32)
    yield "adaptive quadrature", quadrature, (a, b, *values, simpson(a, b, *values), *rest)
    boards, zero = jnp.asarray(2 ** rng.integers(4, 8, lanes) - 1, jnp.int32), jnp.zeros(lanes, jnp.int32)
    yield "queens", queens, (boards, zero, zero, zero)
    sizes = random.Random(0)
    trees = [grown(sizes, sizes.randint(1, 60)) for _ in range(lanes)]
    yield "trees of scalars", height_and_sum, (pcbatch.pack(trees),)
    for hidden in (16, 128):
        given = initial_weights(hidden, 0), jax.device_put(generate(lanes, 1))
        yield f"TreeLSTM, hidden {hidden}", sentiment, given


def row(name: str, lanes: int, fn: Any, args: tuple[Any, ...], repeats: int) -> tuple[str, float]:
    """Return a line of the table, and the time of `"auto"` over that of `"never"`."""
    f = fn if isinstance(fn, pcbatch.Batched) else pcbatch.batch(fn)
    auto, never = (f.with_options(plan=pcbatch.Plan(fork=fork)) for fork in ("auto", "never"))
    for found, wanted in zip(jax.tree.leaves(auto(*args)), jax.tree.leaves(never(*args)), strict=True):
        np.testing.assert_allclose(np.asarray(found), np.asarray(wanted), rtol=2e-3, atol=1e-4)
    one, other, ratio = paired_cpu(_call(auto, args), _call(never, args), repeats)
    return f"| {name} | {lanes:,} | {one * 1e3:.2f} | {other * 1e3:.2f} | {ratio:.2f} |", ratio


def _call(f: Any, args: tuple[Any, ...]) -> Call:
    return lambda: jax.block_until_ready(f(*args))


def main() -> None:
    """Print a line for each program and number of lanes, and the median and the greatest of the ratios."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--lanes", type=int, nargs="+", default=[1, 16, 256, 2048])
    parser.add_argument("--repeats", type=int, default=9)
    parser.add_argument("--only", default="", help="the programs with this in their name")
    options = parser.parse_args()
    print("| program | lanes | auto, ms | never, ms | auto over never |\n|---|---:|---:|---:|---:|")
    ratios = []
    for lanes in options.lanes:
        for name, fn, args in programs(lanes):
            if options.only in name:
                line, ratio = row(name, lanes, fn, args, options.repeats)
                ratios.append(ratio)
                print(line, flush=True)
                jax.clear_caches()
    print(f"| all | | | | median {statistics.median(ratios):.2f}, at most {max(ratios):.2f} (goal {GOAL}) |")


if __name__ == "__main__":
    main()
