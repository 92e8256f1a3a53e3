"""Loops of one small block, with one round in a visit, with rounds by cost, and with eight; recursion unrolled by hand.

    NPROC=1 python -m benchmarks.unrolling [--lanes 16 256 1024 4096]

`loop`, `loop in a loop` and `rare block` are the cheap programs of `benchmarks/break_even.py` with lengths of a long
tail; `gradient` is the reverse mode of the first two, `inside jit` a call of the second one inside `jax.jit`. Numbers
are CPU milliseconds of one thread, medians, all ways in turn; results are compared before anything is timed. Then
recursive functions in lanes, as they are and with their own calls put in place once: what a pass that unrolls recursion
would make of them.
"""

from __future__ import annotations

import argparse
import os
from collections.abc import Callable, Sequence
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

import pcbatch
from benchmarks.break_even import COSTS, OUTER, SPREADS, cheap, flat, nested, rare
from benchmarks.common import interleaved_cpu_medians

LANES = (16, 256, 1024, 4096)
WAYS = {"one round": 1, "by cost": None, "eight": 8}


def loops(lanes: int) -> dict[str, tuple[Callable[..., Any], tuple[Any, ...]]]:
    """The programs: functions of options that give a function of arguments, and the arguments."""
    rng = np.random.default_rng(0)
    mean = COSTS["cheap"].rounds
    rounds = np.maximum(1, SPREADS["long tail"](rng, (lanes, OUTER)) * mean).astype(np.int32)
    inner = np.maximum(1, rounds // OUTER)
    seed, x = rng.integers(0, 2**30, lanes).astype(np.int32), rng.uniform(0, 1, lanes).astype(np.float32)
    args, short = (jnp.asarray(rounds), jnp.asarray(seed), jnp.asarray(x)), (jnp.asarray(inner), seed, jnp.asarray(x))

    def gradient(fn: Callable[..., Any]) -> Callable[..., Any]:
        def make(**options: Any) -> Callable[..., Any]:
            f = pcbatch.batch(fn, **options)
            return jax.grad(lambda rounds, seed, x: jnp.sum(f(rounds, seed, x)), argnums=2)

        return make

    def batched(fn: Callable[..., Any]) -> Callable[..., Any]:
        return lambda **options: pcbatch.batch(fn, **options)

    return {
        "loop": (batched(flat(cheap)), args),
        "loop in a loop": (batched(nested(cheap)), short),
        "rare block": (batched(rare(cheap)), args),
        "gradient of the loop": (gradient(flat(cheap)), args),
        "gradient of the loop in a loop": (gradient(nested(cheap)), short),
        "loop in a loop, inside jit": (lambda **options: jax.jit(pcbatch.batch(nested(cheap), **options)), short),
    }


def fib(n):
    """Fibonacci's numbers."""
    if n < 2:
        return n
    return fib_lanes(n - 1) + fib_lanes(n - 2)


def fib_once(n):
    """The calls of `fib` in their place."""
    if n < 2:
        return n
    first = n - 1 if n < 3 else fib_once_lanes(n - 2) + fib_once_lanes(n - 3)
    second = n - 2 if n < 4 else fib_once_lanes(n - 3) + fib_once_lanes(n - 4)
    return first + second


def simpson(a, b, fa, fb, depth):
    """An integral, halving intervals until two estimates agree."""
    middle = (a + b) / 2
    fm = jnp.exp(-middle * middle)
    if depth == 0 or abs(fm - (fa + fb) / 2) < 1e-4:
        return (b - a) * (fa + 4 * fm + fb) / 6
    return simpson_lanes(a, middle, fa, fm, depth - 1) + simpson_lanes(middle, b, fm, fb, depth - 1)


@pcbatch.inline
def half(a, b, fa, fb, depth):
    """A call of `simpson` in its place."""
    middle = (a + b) / 2
    fm = jnp.exp(-middle * middle)
    if depth == 0 or abs(fm - (fa + fb) / 2) < 1e-4:
        return (b - a) * (fa + 4 * fm + fb) / 6
    return simpson_once_lanes(a, middle, fa, fm, depth - 1) + simpson_once_lanes(middle, b, fm, fb, depth - 1)


def simpson_once(a, b, fa, fb, depth):
    """The calls of `simpson` in their place."""
    middle = (a + b) / 2
    fm = jnp.exp(-middle * middle)
    if depth == 0 or abs(fm - (fa + fb) / 2) < 1e-4:
        return (b - a) * (fa + 4 * fm + fb) / 6
    return half(a, middle, fa, fm, depth - 1) + half(middle, b, fm, fb, depth - 1)


fib_lanes = pcbatch.batch(fib, plan=pcbatch.Plan(fork="never", emitter="guard"))
fib_once_lanes = pcbatch.batch(fib_once, plan=pcbatch.Plan(fork="never", emitter="guard"))
simpson_lanes = pcbatch.batch(simpson, plan=pcbatch.Plan(fork="never", emitter="guard"))
simpson_once_lanes = pcbatch.batch(simpson_once, plan=pcbatch.Plan(fork="never", emitter="guard"))


def recursions(lanes: int) -> dict[str, tuple[dict[str, Callable[..., Any]], tuple[Any, ...]]]:
    """The recursive functions, as they are and unrolled, and their arguments."""
    rng = np.random.default_rng(0)
    n = jnp.asarray(rng.integers(5, 16, lanes), jnp.int32)
    a = jnp.asarray(rng.uniform(-3, 0, lanes), jnp.float32)
    ends = a, a + 3, jnp.exp(-a * a), jnp.exp(-((a + 3) ** 2)), jnp.full(lanes, 12, jnp.int32)
    return {
        "Fibonacci": ({"as it is": fib_lanes, "unrolled once": fib_once_lanes}, (n,)),
        "Simpson's rule": ({"as it is": simpson_lanes, "unrolled once": simpson_once_lanes}, ends),
    }


def measured(calls: dict[str, Callable[[], Any]], repeats: int) -> list[float]:
    """The milliseconds of each, after their results have been compared."""
    results = [np.asarray(jax.block_until_ready(jax.tree.leaves(call())[0])) for call in calls.values()]
    for other in results[1:]:
        np.testing.assert_allclose(other, results[0], rtol=1e-3, atol=1e-5)
    return [1e3 * x for x in interleaved_cpu_medians(calls, repeats).values()]


def row(name: str, lanes: int, numbers: Sequence[float]) -> str:
    """A row of a table."""
    return f"| {name} | {lanes} | " + " | ".join(f"{x:.3g}" for x in numbers) + f" | {numbers[0] / numbers[1]:.2f} |"


def main(arguments: Sequence[str] | None = None) -> None:
    """Print the tables."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--lanes", type=int, nargs="+", default=list(LANES))
    parser.add_argument("--repeats", type=int, default=9)
    options = parser.parse_args(arguments)
    os.environ.setdefault("NPROC", "1")
    print(f"CPU milliseconds\n\n| loop | lanes | {' | '.join(WAYS)} | one round over by cost |\n|{'---|' * 6}")
    for lanes in options.lanes:
        for name, (make, args) in loops(lanes).items():
            fns = {way: make(plan=pcbatch.Plan(unroll=rounds)) for way, rounds in WAYS.items()}
            calls = {way: lambda f=f, args=args: f(*args) for way, f in fns.items()}
            print(row(name, lanes, measured(calls, options.repeats)), flush=True)
    print(f"\n| recursion | lanes | as it is | unrolled once | as it is over unrolled |\n|{'---|' * 5}")
    for lanes in options.lanes:
        for name, (ways, args) in recursions(lanes).items():
            calls = {way: lambda f=f, args=args: f(*args) for way, f in ways.items()}
            print(row(name, lanes, measured(calls, options.repeats)), flush=True)


if __name__ == "__main__":
    main()
