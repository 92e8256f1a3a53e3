"""Compile time and run time of some programs, and what `jax.vmap` does where it can: `python -m benchmarks.programs`"""

from __future__ import annotations

import argparse
from collections.abc import Callable, Sequence
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

import pcbatch
from benchmarks.common import Row, median_seconds, report, seconds
from benchmarks.recursions import ackermann


def collatz(n):
    """Steps until 1: every lane loops its own number of times."""
    steps = 0
    while n != 1:
        n = n // 2 if n % 2 == 0 else 3 * n + 1
        steps += 1
    return steps


def collatz_vmap(n: jax.Array) -> jax.Array:
    """The same by hand for `jax.vmap`."""

    def body(state: tuple[jax.Array, jax.Array]) -> tuple[jax.Array, jax.Array]:
        n, steps = state
        return jnp.where(n % 2 == 0, n // 2, 3 * n + 1), steps + 1

    return jax.lax.while_loop(lambda s: s[0] != 1, body, (n, jnp.int32(0)))[1]


WEIGHT = (np.random.default_rng(1).normal(size=(64, 64)) / 8).astype(np.float32)


def nested_work(count, depth, state):
    """An outer loop of binary recursions whose leaves are matrix products."""
    while count > 0:
        state = work_tree(depth, state)
        count = count - 1
    return state


@pcbatch.batch
def work_tree(depth, state):
    """2**depth products."""
    if depth <= 0:
        return jnp.tanh(jnp.asarray(WEIGHT) @ state)
    return work_tree(depth - 1, work_tree(depth - 1, state))


def time_both(name: str, call: Callable[..., Any], args: tuple[Any, ...], repeats: int) -> list[Row]:
    """First call (compilation in it) and the median of later ones."""
    args = jax.tree.map(jnp.asarray, args)
    first = seconds(lambda: call(*args))
    later = median_seconds(lambda: call(*args), repeats)
    return [Row(f"{name}: first call", first, "s"), Row(f"{name}: later calls", later * 1e3, "ms")]


def parse(arguments: Sequence[str] | None) -> argparse.Namespace:
    """The command line."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--lanes", type=int, default=1024)
    parser.add_argument("--repeats", type=int, default=5)
    parser.add_argument("--json", metavar="OUT")
    return parser.parse_args(arguments)


def main(arguments: Sequence[str] | None = None) -> None:
    """Measure and print."""
    chosen = parse(arguments)
    rng = np.random.default_rng(0)

    def ints(low: int, high: int) -> np.ndarray:
        return rng.integers(low, high + 1, chosen.lanes).astype(np.int32)

    n = ints(1, 1000)
    vector = rng.normal(size=(chosen.lanes, 64)).astype(np.float32)
    rows = time_both("collatz", pcbatch.batch(collatz).run, (n,), chosen.repeats)
    rows += time_both("collatz, vmap by hand", jax.jit(jax.vmap(collatz_vmap)), (n,), chosen.repeats)
    rows += time_both(
        "ackermann", pcbatch.batch(ackermann, max_depth=256).run, (ints(0, 2), ints(0, 6)), chosen.repeats
    )
    work = pcbatch.batch(nested_work, max_depth=16, plan=pcbatch.Plan(fork="never"))
    rows += time_both("matrix work", work.run, (ints(1, 4), ints(0, 4), vector), chosen.repeats)
    report(f"programs, {chosen.lanes} lanes", rows, chosen.json)


if __name__ == "__main__":
    main()
