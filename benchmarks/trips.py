"""What a trip of the machine costs: against lanes, the depth of the stacks, and state that nobody touches.

A trip is here one execution of the busiest block. Its time comes from two runs of the same executable, a long one and
one whose lanes all return at once: what every run pays (the zero fill of the stacks, the call itself) cancels in the
difference.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

import pcbatch
from benchmarks.common import Curve, Row, interleaved_medians
from benchmarks.fib import DEEP, SHALLOW, Case
from benchmarks.queues.peers import together
from benchmarks.recursions import fib, fib_by_hand

LANES, TOP, SIZE, TEN = 1024, 15, 100, 10
DEPTHS = (32, 64, 128, 256, 512, 1024)
BURDENS = (0, 2, 5, TEN, 20)
WIDTHS = (16, 64, 256, 1024, 4096, 16384)
DEPTH_GOAL, BURDEN_GOAL = 1.2, 1.1


def total(beside: tuple[jax.Array, ...]) -> jax.Array:
    """Something that needs all of them."""
    return sum((v[0] for v in beside), jnp.float32(0))


def calls_beside(n, beside):
    """A recursion, and vectors that live beside it until it is done."""
    value = batched_fib(n)
    return value, total(beside)


def loop_beside(n, beside):
    """A loop (a linear congruential generator), and vectors that live beside it until it is done."""
    x = 1
    while n > 0:
        x = (1664525 * x + 1013904223) & 0x7FFFFFFF
        n = n - 1
    return x, total(beside)


batched_fib = pcbatch.batch(fib)
PROGRAMS: dict[str, tuple[Callable[..., Any], int]] = {
    "a recursion": (calls_beside, TOP),
    "a loop": (loop_beside, 10**5),
}


class Burdened:
    """A program with so many vectors that live beside its work."""

    def __init__(self, program: Callable[..., Any], top: int, vectors: int) -> None:
        rng = np.random.default_rng(0)
        n = jnp.asarray(rng.integers(0, top + 1, LANES), jnp.int32)
        beside = tuple(jnp.asarray(rng.normal(size=(LANES, SIZE)), jnp.float32) for _ in range(vectors))
        self._long, self._short = (n, beside), (jnp.zeros_like(n), beside)
        batched = pcbatch.batch(program, max_depth=SHALLOW, plan=pcbatch.Plan(fork="never"))
        self._run = batched.run
        self.trips = rounds(batched, self._long) - rounds(batched, self._short)

    def run(self) -> pcbatch.Result:
        """The whole work."""
        return self._run(*self._long)

    def idle(self) -> pcbatch.Result:
        """A run in which every lane returns at once."""
        return self._run(*self._short)


def rounds(batched: Any, args: tuple[Any, ...]) -> int:
    """How often the busiest block ran: a trip may run a loop many times."""
    return max(block.visits for block in batched.with_options(stats=True).run(*args).stats.blocks)


def check(name: str, values: Sequence[jax.Array]) -> None:
    """Stop if what stands beside the work changes its result."""
    if not all(np.array_equal(np.asarray(v), np.asarray(values[0])) for v in values):
        raise SystemExit(f"{name}: wrong results, nothing to measure")


def per_trip(cases: dict[Any, Any], repeats: int) -> dict[Any, float]:
    """Seconds per trip of cases that have `run`, `idle` and the difference of their trips in `trips`."""
    calls = {f"run {key}": case.run for key, case in cases.items()}
    calls |= {f"idle {key}": case.idle for key, case in cases.items()}
    times = interleaved_medians(calls, repeats)
    return {key: (times[f"run {key}"] - times[f"idle {key}"]) / case.trips for key, case in cases.items()}


def lanes(repeats: int, widths: Sequence[int] = WIDTHS) -> tuple[list[Row], list[Curve]]:
    """Fibonacci on more and more lanes, against a stack by hand under `jax.vmap`."""
    rates: dict[str, list[float]] = {}
    by_hand = together(fib_by_hand)
    for width in widths:
        case = Case(width, SHALLOW, TOP)
        ways = {"pcbatch": case.run, "by hand, vmap": lambda n=case.long: by_hand(n)}
        check("fib", [case.run().value, by_hand(case.long)])
        for way, time in interleaved_medians(ways, repeats).items():
            rates.setdefault(way, []).append(width / time)
    rows = [
        Row(f"fib, n in 0..{TOP}, {width} lanes: {way}", rate, "lanes/s")
        for way, column in rates.items()
        for width, rate in zip(widths, column, strict=True)
    ]
    return rows, [Curve("throughput fib", way, list(widths), column) for way, column in rates.items()]


def depth(repeats: int, depths: Sequence[int] = DEPTHS) -> tuple[list[Row], list[Curve]]:
    """Fibonacci with stacks of several depths."""
    cases = {d: Case(LANES, d, TOP) for d in depths}
    costs = {d: cost * 1e6 for d, cost in per_trip(cases, repeats).items()}
    rows = [Row(f"a trip of fib, {LANES} lanes, depth {d}", cost, "us") for d, cost in costs.items()]
    ratio = costs[DEEP] / costs[SHALLOW]
    name = f"a trip, depth {DEEP} / depth {SHALLOW}"
    rows.append(Row(name, ratio, "x", DEPTH_GOAL, False, f"depth {SHALLOW} (us)", costs[SHALLOW]))
    return rows, [Curve("depth", f"fib, {LANES} lanes", list(costs), list(costs.values()))]


def state(repeats: int, burdens: Sequence[int] = BURDENS) -> tuple[list[Row], list[Curve]]:
    """A recursion and a loop beside vectors that live and that nobody touches."""
    rows, curves = [], []
    for name, (program, top) in PROGRAMS.items():
        cases = {k: Burdened(program, top, k) for k in burdens}
        check(name, [case.run().value[0] for case in cases.values()])
        costs = {k: cost * 1e6 for k, cost in per_trip(cases, repeats).items()}
        rows += [Row(f"a trip of {name}, {LANES} lanes, {k} vectors beside it", c, "us") for k, c in costs.items()]
        ratio, label = costs[TEN] / costs[0], f"a trip of {name}, {TEN} vectors beside it / none"
        rows.append(Row(label, ratio, "x", BURDEN_GOAL, False, "none (us)", costs[0]))
        curves.append(Curve("state", name, [k * SIZE for k in costs], list(costs.values())))
    return rows, curves
