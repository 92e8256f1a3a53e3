"""One level of a recursion inside another, by hand: `python -m benchmarks.unrolled_recursion [--quick]`

Cocktailer (OSDI 2023) unrolls recursive calls into the body, so that one visit does the work of two. Small recursions
are compared with themselves: as they run by choice, with and without the pass that unrolls them and written out by
hand, each call replaced by the body of the function once; and with all lanes together, by hand. CPU milliseconds
(`NPROC=1`), the least of calls that take turns.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

import pcbatch
from pcbatch.lowering.left_out import without


@pcbatch.batch
def fib(n: Any) -> Any:
    """Return a Fibonacci number."""
    if n < 2:
        return n
    return fib(n - 1) + fib(n - 2)


@pcbatch.batch
def fib_unrolled(n: Any) -> Any:
    """Return what `fib` does."""
    if n < 2:
        return n
    a = n - 1 if n - 1 < 2 else fib_unrolled(n - 2) + fib_unrolled(n - 3)
    b = n - 2 if n - 2 < 2 else fib_unrolled(n - 3) + fib_unrolled(n - 4)
    return a + b


@pcbatch.batch
def binomial(n: Any, k: Any) -> Any:
    """Return a binomial coefficient by Pascal's triangle."""
    if k == 0 or k == n:
        return 1
    return binomial(n - 1, k - 1) + binomial(n - 1, k)


@pcbatch.batch
def binomial_unrolled(n: Any, k: Any) -> Any:
    """Return what `binomial` does."""
    if k == 0 or k == n:
        return 1
    left = 1 if k - 1 == 0 or k == n else binomial_unrolled(n - 2, k - 2) + binomial_unrolled(n - 2, k - 1)
    right = 1 if k == n - 1 else binomial_unrolled(n - 2, k - 1) + binomial_unrolled(n - 2, k)
    return left + right


@pcbatch.batch
def hanoi(n: Any, start: Any, end: Any) -> Any:
    """Return a checksum of the moves of the towers of Hanoi."""
    if n == 0:
        return 0
    middle = 3 - start - end
    return hanoi(n - 1, start, middle) + (start + 1) * (end + 2) + hanoi(n - 1, middle, end)


@pcbatch.batch
def hanoi_unrolled(n: Any, start: Any, end: Any) -> Any:
    """Return what `hanoi` does."""
    if n == 0:
        return 0
    middle = 3 - start - end
    first = last = 0
    if n > 1:
        first = hanoi_unrolled(n - 2, start, end) + (start + 1) * (middle + 2) + hanoi_unrolled(n - 2, end, middle)
        last = hanoi_unrolled(n - 2, middle, start) + (middle + 1) * (end + 2) + hanoi_unrolled(n - 2, start, end)
    return first + (start + 1) * (end + 2) + last


def peak(x: Any) -> Any:
    """Return a function with a narrow peak."""
    return 1.0 / (1e-3 + (x - 0.3) ** 2)


@pcbatch.batch
def halves(a: Any, b: Any, least: Any) -> Any:
    """Return an integral by trapezoids, halved where they differ."""
    m = (a + b) / 2
    whole, parts = (b - a) * (peak(a) + peak(b)) / 2, (b - a) * (peak(a) + 2 * peak(m) + peak(b)) / 4
    if jnp.abs(whole - parts) < least:
        return parts
    return halves(a, m, least) + halves(m, b, least)


@pcbatch.batch
def halves_unrolled(a: Any, b: Any, least: Any) -> Any:
    """Return what `halves` does."""
    m = (a + b) / 2
    whole, parts = (b - a) * (peak(a) + peak(b)) / 2, (b - a) * (peak(a) + 2 * peak(m) + peak(b)) / 4
    if jnp.abs(whole - parts) < least:
        return parts
    m1, m2 = (a + m) / 2, (m + b) / 2
    whole1, left = (m - a) * (peak(a) + peak(m)) / 2, (m - a) * (peak(a) + 2 * peak(m1) + peak(m)) / 4
    if jnp.abs(whole1 - left) >= least:
        left = halves_unrolled(a, m1, least) + halves_unrolled(m1, m, least)
    whole2, right = (b - m) * (peak(m) + peak(b)) / 2, (b - m) * (peak(m) + 2 * peak(m2) + peak(b)) / 4
    if jnp.abs(whole2 - right) >= least:
        right = halves_unrolled(m, m2, least) + halves_unrolled(m2, b, least)
    return left + right


def arguments(name: str, lanes: int) -> tuple[Any, ...]:
    """Return arguments of one of the programs."""
    r = np.random.default_rng(0)
    n = jnp.asarray(r.integers(4, 14, lanes), jnp.int32)
    match name:
        case "fib":
            return (n,)
        case "binomial":
            return n, jnp.asarray(r.integers(0, np.asarray(n) + 1), jnp.int32)
        case "hanoi":
            return n - 3, jnp.zeros(lanes, jnp.int32), jnp.full(lanes, 2, jnp.int32)
    return jnp.zeros(lanes), jnp.ones(lanes), jnp.asarray(10 ** r.uniform(-3, 0, lanes), jnp.float32)


PROGRAMS: dict[str, tuple[Any, Any]] = {
    "fib": (fib, fib_unrolled),
    "binomial": (binomial, binomial_unrolled),
    "hanoi": (hanoi, hanoi_unrolled),
    "halves": (halves, halves_unrolled),
}


def least(ways: list[Callable[[], Any]], repeats: int) -> list[float]:
    """Return the least milliseconds of each way; all must give the same."""
    results = [np.asarray(way()) for way in ways]
    for result in results:
        np.testing.assert_allclose(result, results[0], rtol=1e-4)
    times: list[list[float]] = [[] for _ in ways]
    for _ in range(repeats):
        for way, found in zip(ways, times, strict=True):
            begun = time.process_time()
            jax.block_until_ready(way())
            found.append(1e3 * (time.process_time() - begun))
    return [min(found) for found in times]


def main() -> None:
    """Print the table, and the median of what unrolling gains."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true", help="64 lanes alone")
    quick = parser.parse_args().quick
    print("| program, lanes | as it is, ms | by the pass, times | by hand, times | together, ms | by hand, times |")
    print("|---|---:|---:|---:|---:|---:|")
    gains: list[tuple[float, float, float]] = []
    for name, (plain, by_hand) in PROGRAMS.items():
        together = [f.with_options(plan=pcbatch.Plan(schedule="sweep", fork="never")) for f in (plain, by_hand)]
        functions = (plain, plain.with_options(), by_hand, *together)
        for lanes in (64,) if quick else (64, 1024):
            args = arguments(name, lanes)
            ways = [lambda f=f, args=args: f(*args) for f in functions]
            for function, way in zip(functions, ways, strict=True):
                with without(*["unroll_recursion"] * (function is not functions[1])):
                    way()
            a, b, c, d, e = least(ways, 5 if quick else 11)
            gains.append((a / b, a / c, d / e))
            print(f"| {name}, {lanes} | {a:.2f} | {a / b:.2f} | {a / c:.2f} | {d:.2f} | {d / e:.2f} |", flush=True)
    by_pass, hand, wide = np.median(gains, axis=0)
    print(f"median gain: by the pass {by_pass:.2f}, by hand {hand:.2f}; together by hand {wide:.2f}")


if __name__ == "__main__":
    main()
