"""ONE example that divides and conquers: `python -m benchmarks.divide [--repeats 7]`

A merge sort of 2**16 numbers, a recursive matrix product, adaptive quadrature and 10 queens: calls side by side against
one lane, with the mean width of visits. Results are compared before anything is timed. CPU seconds of the process,
medians, both ways in turn; XLA gets one thread with NPROC=1.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

import pcbatch
from benchmarks.common import interleaved_cpu_medians
from benchmarks.recursions import queens
from benchmarks.tasks import integrand, quadrature, simpson

NUMBERS, SORTED_AT_ONCE = 2**16, 2**12
SIDE, COLUMNS_AT_ONCE = 256, 16
Program = tuple[str, Any, tuple[Any, ...], tuple[Any, ...]]  # name, function, axes, arguments


def merge_sort(numbers, start, length):
    """Sort a part of an array; behind it are infinities."""
    if length <= SORTED_AT_ONCE:
        part = jnp.sort(jax.lax.dynamic_slice(numbers, (start,), (SORTED_AT_ONCE,)))
        return jnp.concatenate([part, jnp.full(NUMBERS - SORTED_AT_ONCE, jnp.inf)])
    half = length // 2
    return merged(merge_sort(numbers, start, half), merge_sort(numbers, start + half, half))


def merged(a, b):
    """Merge two sorted arrays with infinities behind: each number goes to its rank in both."""
    ranks = jnp.arange(NUMBERS)
    at_a = ranks + jnp.searchsorted(b, a, side="left")
    at_b = ranks + jnp.searchsorted(a, b, side="right")
    return jnp.full(NUMBERS, jnp.inf).at[at_a].set(a, mode="drop").at[at_b].set(b, mode="drop")


def product(a, b, first, columns):
    """Multiply some columns of a matrix by as many rows of another."""
    if columns <= COLUMNS_AT_ONCE:
        left = jax.lax.dynamic_slice(a, (0, first), (SIDE, COLUMNS_AT_ONCE))
        return left @ jax.lax.dynamic_slice(b, (first, 0), (COLUMNS_AT_ONCE, SIDE))
    half = columns // 2
    return product(a, b, first, half) + product(a, b, first + half, half)


def programs() -> list[Program]:
    """The programs, with the arguments of one example."""
    rng = np.random.default_rng(0)
    numbers, a, b = (jnp.asarray(rng.normal(size=s), jnp.float32) for s in (NUMBERS, (SIDE, SIDE), (SIDE, SIDE)))
    zero = jnp.zeros(1, jnp.int32)
    ends = jnp.float32([0.0]), jnp.float32([1.0])
    middle = (ends[0] + ends[1]) / 2
    values = integrand(ends[0]), integrand(middle), integrand(ends[1])
    area = simpson(*ends, *values)
    tolerance = jnp.float32([1e-7])
    board = jnp.int32([2**10 - 1])
    return [
        ("merge sort of 65,536 numbers", merge_sort, (None, 0, 0), (numbers, zero, zero + NUMBERS)),
        ("recursive matrix product, 256", product, (None, None, 0, 0), (a, b, zero, zero + SIDE)),
        ("adaptive quadrature", quadrature, (0,) * 8, (*ends, *values, area, tolerance, zero)),
        ("10 queens", queens, (0,) * 4, (board, zero, zero, zero)),
    ]


def measured(name: str, fn: Any, axes: tuple[Any, ...], args: tuple[Any, ...], repeats: int) -> str:
    """Return the line of the table for a program."""
    ways: dict[str, Callable[[], Any]] = {}
    for fork in ("never", "always"):
        batched = pcbatch.batch(fn, in_axes=axes, plan=pcbatch.Plan(fork=fork))
        ways[fork] = lambda batched=batched: jax.block_until_ready(batched(*args))
    one, other = (way() for way in ways.values())
    np.testing.assert_allclose(one, other, rtol=1e-4, atol=1e-4)
    lanes, tasks = (1e3 * median for median in interleaved_cpu_medians(ways, repeats).values())
    return f"| {name} | {lanes:.1f} | {tasks:.1f} | {lanes / tasks:.1f} | {widths(fn, axes, args)} |"


def widths(fn: Any, axes: tuple[Any, ...], args: tuple[Any, ...]) -> str:
    """Return, for each block of tasks, the mean number of records in a visit."""
    counted = pcbatch.batch(fn, in_axes=axes, plan=pcbatch.Plan(fork="always"), stats=True).run(*args)
    blocks = [block for block in counted.stats.blocks if block.visits and "." in block.label]
    return ", ".join(f"{block.active / block.visits:.0f}" for block in blocks)


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--repeats", type=int, default=7)
    repeats = parser.parse_args().repeats
    print("| one example | lane, ms | tasks, ms | times as fast | mean width of visits, by block |")
    print("|---|---|---|---|---|")
    for name, fn, axes, args in programs():
        print(measured(name, fn, axes, args, repeats), flush=True)


if __name__ == "__main__":
    main()
