"""The host's share of a repeated call of a small function: what a call costs besides what its lanes compute.

    NPROC=1 python -m benchmarks.calls [--lanes 1 16 256] [--only gcd] [--repeats 11]

A plain call of a batched function with arrays of NumPy and of JAX, `f.run`, `jax.jit` of a `vmap` of the same loop by
hand (none for the recursion) and of `x + 1`, with the result read, and CPython for the same lanes: microseconds of the
process per call, medians of repeats that take turns. The lanes compute next to nothing.
"""

from __future__ import annotations

import argparse
import os
from collections.abc import Callable
from typing import Any

os.environ.setdefault("NPROC", "1")

import jax
import jax.numpy as jnp
import numpy as np

import pcbatch
from benchmarks.common import interleaved_cpu_medians

COLUMNS = ("NumPy", "JAX", "f.run", "jit by hand", "jit of x + 1", "CPython")


def collatz(n):
    """Count the steps of Collatz's sequence."""
    count = 0
    while n != 1:
        n = n // 2 if n % 2 == 0 else 3 * n + 1
        count += 1
    return count


def gcd(a, b):
    """Return the greatest common divisor."""
    while b:
        a, b = b, a % b
    return a


def fib(n):
    """Return a number of Fibonacci, by recursion."""
    return n if n < 2 else fib(n - 2) + fib(n - 1)


def divided(d):
    """Divide by counting, from a dict into a dict and a tuple."""
    rest, times = d["n"], 0
    while rest >= d["by"]:
        rest, times = rest - d["by"], times + 1
    return {"rest": rest, "times": times}, (rest, times)


def squares(n):
    """Return a list."""
    out = []
    for k in range(n):
        out.append(k * k)
    return out


def collatz_by_hand(n: Any) -> Any:
    """Run `collatz` as a loop of JAX."""

    def step(state: Any) -> Any:
        n, count = state
        return jnp.where(n % 2 == 0, n // 2, 3 * n + 1), count + 1

    return jax.lax.while_loop(lambda s: s[0] != 1, step, (n, jnp.int32(0)))[1]


def gcd_by_hand(a: Any, b: Any) -> Any:
    """Run `gcd` as a loop of JAX."""
    return jax.lax.while_loop(lambda s: s[1] != 0, lambda s: (s[1], s[0] % s[1]), (a, b))[0]


def divided_by_hand(d: Any) -> Any:
    """Run `divided` as a loop of JAX."""
    start = d["n"], jnp.int32(0)
    rest, times = jax.lax.while_loop(lambda s: s[0] >= d["by"], lambda s: (s[0] - d["by"], s[1] + 1), start)
    return {"rest": rest, "times": times}, (rest, times)


Make = Callable[[np.ndarray], tuple[Any, ...]]
PROGRAMS: tuple[tuple[Callable[..., Any], Make, Callable[..., Any] | None], ...] = (
    (collatz, lambda n: (n,), collatz_by_hand),
    (gcd, lambda n: (n + 8, n), gcd_by_hand),
    (fib, lambda n: (n,), None),
    (divided, lambda n: ({"n": n, "by": n},), divided_by_hand),
    (squares, lambda n: (n,), None),
)


def row(fn: Callable[..., Any], args: tuple[Any, ...], by_hand: Any, calls: int, repeats: int) -> list[float | None]:
    """Return the microseconds of a call in each column."""
    f, ours = pcbatch.batch(fn), jax.tree.map(jnp.asarray, args)
    lanes = len(jax.tree.leaves(args)[0])
    examples = [jax.tree.map(lambda x, k=k: int(x[k]), args) for k in range(lanes)]
    jitted, plus = None if by_hand is None else jax.jit(jax.vmap(by_hand)), jax.jit(lambda *args: args[0] + 1)
    sides = {
        "NumPy": lambda: read(f(*args)),
        "JAX": lambda: read(f(*ours)),
        "f.run": lambda: read(f.run(*ours).value),
        "jit by hand": jitted and (lambda: read(jitted(*ours))),
        "jit of x + 1": lambda: read(plus(jax.tree.leaves(ours)[0])),
        "CPython": lambda: [fn(*one) for one in examples],
    }
    medians = interleaved_cpu_medians(
        {name: repeated(side, calls) for name, side in sides.items() if side is not None}, repeats
    )
    return [medians[name] / calls * 1e6 if name in medians else None for name in COLUMNS]


def read(value: Any) -> None:
    """Wait for a value by reading its first leaf."""
    np.asarray(jax.tree.leaves(value)[0])


def repeated(side: Callable[[], Any], calls: int) -> Callable[[], None]:
    """Return a function that makes so many calls, for the clock of the process."""

    def run() -> None:
        for _ in range(calls):
            side()

    return run


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--lanes", type=int, nargs="+", default=[1, 16, 256])
    parser.add_argument("--only", default="", help="the programs with this in their name")
    parser.add_argument("--calls", type=int, default=300, help="calls of each side in a repeat")
    parser.add_argument("--repeats", type=int, default=7)
    given = parser.parse_args()
    print(f"| program | lanes | {' | '.join(COLUMNS)} |", "|---" * (2 + len(COLUMNS)) + "|", sep="\n")
    for fn, make, by_hand in PROGRAMS:
        for lanes in given.lanes if given.only in fn.__name__ else ():
            args = make(np.full(lanes, 3, np.int32))
            cells = row(fn, args, by_hand, given.calls, given.repeats)
            numbers = ("" if cell is None else f"{cell:.0f}" for cell in cells)
            print(f"| {fn.__name__} | {lanes} | {' | '.join(numbers)} |", flush=True)


if __name__ == "__main__":
    main()
