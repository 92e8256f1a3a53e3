"""Where a batched function breaks even with `jax.vmap` of its loops by hand: lanes, cost of a block, spread of lengths.

    python -m benchmarks.break_even [--lanes 16 256] [--shapes nested] [--costs cheap] [--times]

Three shapes of program: one loop; a loop in a loop, the inner one of unequal length; a loop with a block behind an
`if` that one round in sixteen takes. The block is cheap (a few operations on a number), middle (some 200 on a vector of
32) or expensive (a product of a 64 x 64 matrix that lanes share with a vector). Lengths are equal, within a factor of
two, or exponential with a long tail; their mean is the same. Each call is a plain one, `f(...)`, with all defaults, and
outside of `jit`. Results are compared before anything is timed; CPU seconds of one thread, in turn, the median of the
ratios of pairs, by hand over ours: above 1, ours is faster.
"""

from __future__ import annotations

import argparse
import os
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

import pcbatch
from benchmarks.common import paired_cpu

LANES = (16, 64, 256, 1024, 4096)
OUTER = 8  # rounds of the outer loop, of two
RARE = 16  # one round in so many takes the block behind the `if`
REPEATS = 5
MIX = 0.5 / np.sqrt(64) * np.random.default_rng(0).normal(size=(64, 64)).astype(np.float32)


def cheap(x):
    """A few operations on a number."""
    return 0.9 * x + 0.1 / (1 + x * x)


def middle(x):
    """Some 200 operations on a vector of 32."""
    return 0.9 * x + 0.1 / (1 + jnp.roll(x, 1) ** 2)


def expensive(x):
    """A product of a matrix that lanes share with a vector of 64."""
    return jnp.tanh(MIX @ x + 0.1)


@dataclass(frozen=True, slots=True)
class Cost:
    """A block, the shape of its vector, and the mean number of times that a lane runs it."""

    block: Callable[[Any], Any]
    shape: tuple[int, ...]
    rounds: int


COSTS = {
    "cheap": Cost(cheap, (), 256),
    "middle": Cost(middle, (32,), 128),
    "expensive": Cost(expensive, (64,), 32),
}

SPREADS: dict[str, Callable[[np.random.Generator, tuple[int, ...]], np.ndarray]] = {
    "equal": lambda rng, size: np.ones(size),
    "within 2x": lambda rng, size: rng.uniform(2 / 3, 4 / 3, size),
    "long tail": lambda rng, size: rng.exponential(1, size),
}


def flat(block: Callable[[Any], Any]) -> Callable[..., Any]:
    """One loop."""

    def run(rounds, seed, x):
        done = 0
        while done < rounds[0]:
            x = block(x)
            done += 1
        return x

    return run


def flat_by_hand(block: Callable[[Any], Any]) -> Callable[..., Any]:
    """The loop of `flat`."""

    def run(rounds: jax.Array, seed: jax.Array, x: jax.Array) -> jax.Array:
        start = (jnp.zeros_like(rounds[0]), x)
        return jax.lax.while_loop(lambda s: s[0] < rounds[0], lambda s: (s[0] + 1, block(s[1])), start)[1]

    return run


def nested(block: Callable[[Any], Any]) -> Callable[..., Any]:
    """A loop in a loop."""

    def run(rounds, seed, x):
        for k in range(OUTER):
            done = 0
            while done < rounds[k]:
                x = block(x)
                done += 1
            x = 0.5 * x
        return x

    return run


def nested_by_hand(block: Callable[[Any], Any]) -> Callable[..., Any]:
    """The loops of `nested`."""

    def run(rounds: jax.Array, seed: jax.Array, x: jax.Array) -> jax.Array:
        def one(k: jax.Array, x: jax.Array) -> jax.Array:
            start = (jnp.zeros_like(rounds[0]), x)
            return 0.5 * jax.lax.while_loop(lambda s: s[0] < rounds[k], lambda s: (s[0] + 1, block(s[1])), start)[1]

        return jax.lax.fori_loop(0, OUTER, one, x)

    return run


def chance(seed):
    """The next number of a generator, and whether the block runs."""
    seed = (seed * 1103515245 + 12345) & 0x7FFFFFFF
    return seed, (seed >> 16) % RARE == 0


def rare(block: Callable[[Any], Any]) -> Callable[..., Any]:
    """A loop with a block behind an `if`."""

    def run(rounds, seed, x):
        done = 0
        while done < rounds[0]:
            seed, wanted = chance(seed)
            if wanted:
                x = block(x)
            done += 1
        return x, seed

    return run


def rare_by_hand(block: Callable[[Any], Any]) -> Callable[..., Any]:
    """The loop of `rare`.

    `jax.vmap` of a `jax.lax.cond` runs both branches too, and gives each lane a copy of the matrix: ten times slower.
    """

    def run(rounds: jax.Array, seed: jax.Array, x: jax.Array) -> Any:
        def one(s: Any) -> Any:
            done, seed, x = s
            seed, wanted = chance(seed)
            return done + 1, seed, jnp.where(wanted, block(x), x)

        start = (jnp.zeros_like(rounds[0]), seed, x)
        _, seed, x = jax.lax.while_loop(lambda s: s[0] < rounds[0], one, start)
        return x, seed

    return run


@dataclass(frozen=True, slots=True)
class Shape:
    """A kind of program: ours, the same by hand, how many lengths a lane has, and how many times as many rounds."""

    title: str
    ours: Callable[[Callable[[Any], Any]], Callable[..., Any]]
    by_hand: Callable[[Callable[[Any], Any]], Callable[..., Any]]
    lengths: int = 1
    factor: int = 1


SHAPES = {
    "flat": Shape("One loop", flat, flat_by_hand),
    "nested": Shape(f"A loop of unequal length in a loop of {OUTER} rounds", nested, nested_by_hand, OUTER),
    "rare": Shape(f"A loop that takes the block in one round of {RARE}", rare, rare_by_hand, factor=4),
}


def inputs(shape: Shape, cost: Cost, spread: str, lanes: int) -> tuple[jax.Array, ...]:
    """Lengths, seeds and vectors."""
    rng = np.random.default_rng(1)
    mean = cost.rounds * shape.factor / shape.lengths
    rounds = np.ceil(mean * SPREADS[spread](rng, (lanes, shape.lengths))).astype(np.int32)
    seeds = rng.integers(0, 2**31, lanes).astype(np.uint32)
    return tuple(map(jnp.asarray, (rounds, seeds, rng.normal(size=(lanes, *cost.shape)).astype(np.float32))))


@dataclass(frozen=True, slots=True)
class Number:
    """One number of the table: CPU milliseconds of both sides, and the ratio, by hand over ours."""

    by_hand: float
    ours: float
    ratio: float


def row(shape: Shape, cost: Cost, lanes: int) -> list[Number]:
    """Compare results and times for each spread of lengths."""
    ours, peer = pcbatch.batch(shape.ours(cost.block)), jax.jit(jax.vmap(shape.by_hand(cost.block)))
    numbers = []
    for spread in SPREADS:
        given = inputs(shape, cost, spread, lanes)
        for mine, theirs in zip(jax.tree.leaves(ours(*given)), jax.tree.leaves(peer(*given)), strict=True):
            np.testing.assert_allclose(mine, theirs, rtol=1e-3, atol=1e-3)
        theirs, mine, ratio = paired_cpu(lambda given=given: peer(*given), lambda given=given: ours(*given), REPEATS)
        numbers.append(Number(1e3 * theirs, 1e3 * mine, ratio))
    return numbers


def table(shape: Shape, costs: Sequence[str], lanes: Sequence[int], times: bool) -> str:
    """A table: a row for each cost and spread, a column for each number of lanes."""
    columns = {(cost, count): row(shape, COSTS[cost], count) for cost in costs for count in lanes}
    lines = [f"| {shape.title} | {' | '.join(f'{count} lanes' for count in lanes)} |", "|---" * (len(lanes) + 1) + "|"]
    for cost in costs:
        for k, spread in enumerate(SPREADS):
            cells = [cell(columns[cost, count][k], times) for count in lanes]
            lines.append(f"| {cost}, {spread} | {' | '.join(cells)} |")
    return "\n".join(lines)


def cell(number: Number, times: bool) -> str:
    """The ratio, with the times of both if they are wanted."""
    ratio = f"{number.ratio:.2g}" if number.ratio < 9.95 else f"{number.ratio:.0f}"
    return f"{ratio} ({number.by_hand:.2f}, {number.ours:.2f})" if times else ratio


def main(arguments: Sequence[str] | None = None) -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--lanes", type=int, nargs="*", default=LANES)
    parser.add_argument("--shapes", nargs="*", choices=SHAPES, default=list(SHAPES))
    parser.add_argument("--costs", nargs="*", choices=COSTS, default=list(COSTS))
    parser.add_argument("--times", action="store_true", help="with CPU milliseconds, by hand and ours")
    options = parser.parse_args(arguments)
    print(f"by hand over ours; {os.cpu_count()} cores, load {os.getloadavg()[0]:.1f} at the start")
    for name in options.shapes:
        print("\n" + table(SHAPES[name], options.costs, options.lanes, options.times), flush=True)
    print(f"\nload {os.getloadavg()[0]:.1f} at the end")


if __name__ == "__main__":
    os.environ.setdefault("NPROC", "1")
    main()
