"""Loops of cheap rounds and unequal lengths, against `jax.vmap` of the same loops written by hand.

    python -m benchmarks.cheap_loops [--lanes 32 256 2048] [--only slice]

Samplers and graph searches whose round is a few dozen operations: what a trip costs besides arithmetic decides. A
peer is `jax.vmap` of nested `lax.while_loop`s (Fibonacci: of a loop with a stack by hand) with the same draws from the
same keys. Results are compared before anything is timed. CPU seconds of one thread, in turn, the median of the ratios
of pairs, peer over ours: above 1, ours is faster. Then the visits of a run (of lists, where calls run side by side),
with the mean share of the lanes that took part in one, by estimated cost.
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
from benchmarks.common import check_lanes_agree, paired_cpu
from benchmarks.recursions import fib, fib_by_hand
from examples.gallery import elliptical_slice as gallery_elliptical
from examples.gallery import slice_sampling as gallery_slice

DRAWS, WIDTH, SIZE, NODES = 100, 1.0, 10, 64
LANES = (32, 256, 2048)


def log_density(x):
    """Two Gaussians of different widths, as a log density that is not normalised."""
    return jnp.logaddexp(-0.5 * x**2, -0.5 * ((x - 4) / 0.5) ** 2)


def slice_sampling(key, x):
    """The gallery's sampler."""
    return gallery_slice.sample(log_density, key, x, DRAWS, WIDTH)


def slice_by_hand(key: jax.Array, x: jax.Array) -> Any:
    """The loops of `slice_sampling`; bounds step out in one loop, as under `vmap` two would wait for each other."""

    def one(_: int, s: Any) -> Any:
        key, x, mean, square = s
        key, height, place, inside = jax.random.split(key, 4)
        level = log_density(x) + jnp.log(jax.random.uniform(height))
        left = x - WIDTH * jax.random.uniform(place)

        def outside(b: jax.Array) -> jax.Array:
            return log_density(b) > level

        def step(b: jax.Array) -> jax.Array:
            return jnp.where(outside(b), b + jnp.array([-WIDTH, WIDTH]), b)

        bounds = jnp.stack([left, left + WIDTH])
        left, right = jax.lax.while_loop(lambda b: jnp.any(outside(b)), step, bounds)

        def propose(inside: jax.Array, left: jax.Array, right: jax.Array) -> tuple[jax.Array, jax.Array]:
            inside, now = jax.random.split(inside)
            return inside, left + (right - left) * jax.random.uniform(now)

        def shrink(s: Any) -> Any:
            inside, left, right, y = s
            left, right = jnp.where(y < x, y, left), jnp.where(y < x, right, y)
            inside, y = propose(inside, left, right)
            return inside, left, right, y

        inside, y = propose(inside, left, right)
        y = jax.lax.while_loop(lambda s: log_density(s[3]) < level, shrink, (inside, left, right, y))[3]
        return key, y, mean + y / DRAWS, square + y**2 / DRAWS

    return jax.lax.fori_loop(0, DRAWS, one, (key, x, x * 0, x * 0))[1:]


def log_likelihood(f):
    """A likelihood that is far narrower than the prior, so that angles are refused."""
    return -0.5 * jnp.sum((f - 1.0) ** 2) / 0.1


def elliptical_slice(key, f):
    """The gallery's sampler."""
    return gallery_elliptical.sample(log_likelihood, key, f, DRAWS)


def elliptical_by_hand(key: jax.Array, f: jax.Array) -> Any:
    """The loops of `elliptical_slice`."""

    def one(_: int, s: Any) -> Any:
        key, f, mean, square = s
        key, prior, height, inside = jax.random.split(key, 4)
        nu = jax.random.normal(prior, (SIZE,))
        level = log_likelihood(f) + jnp.log(jax.random.uniform(height))
        inside, now = jax.random.split(inside)
        angle = 2 * jnp.pi * jax.random.uniform(now)

        def at(angle: jax.Array) -> jax.Array:
            return f * jnp.cos(angle) + nu * jnp.sin(angle)

        def shrink(s: Any) -> Any:
            inside, low, high, angle, _ = s
            low, high = jnp.where(angle < 0, angle, low), jnp.where(angle < 0, high, angle)
            inside, now = jax.random.split(inside)
            angle = low + (high - low) * jax.random.uniform(now)
            return inside, low, high, angle, at(angle)

        start = (inside, angle - 2 * jnp.pi, angle, angle, at(angle))
        f = jax.lax.while_loop(lambda s: log_likelihood(s[4]) <= level, shrink, start)[4]
        return key, f, mean + f / DRAWS, square + f**2 / DRAWS

    return jax.lax.fori_loop(0, DRAWS, one, (key, f, f * 0, f * 0))[2:]


def scanning(lengths, goal):
    """Dijkstra's algorithm with a scan for the nearest open node, until the goal is the nearest."""
    distance = jnp.full(NODES, jnp.inf).at[0].set(0.0)
    done = jnp.zeros(NODES, bool)
    node = 0
    while node != goal and distance[node] < jnp.inf:
        done = done.at[node].set(True)
        distance = jnp.where(done, distance, jnp.minimum(distance, distance[node] + lengths[node]))
        node = jnp.argmin(jnp.where(done, jnp.inf, distance))
        if done[node]:
            return jnp.inf
    return distance[node]


def scanning_by_hand(lengths: jax.Array, goal: jax.Array) -> jax.Array:
    """The loop of `scanning`."""

    def step(s: Any) -> Any:
        distance, done, node, _ = s
        done = done | (jnp.arange(NODES) == node)
        distance = jnp.where(done, distance, jnp.minimum(distance, distance[node] + lengths[node]))
        open_ = jnp.where(done, jnp.inf, distance)
        node = jnp.argmin(open_)
        return distance, done, node, open_[node]

    start = jnp.where(jnp.arange(NODES) == 0, 0.0, jnp.inf), jnp.zeros(NODES, bool), jnp.argmin(goal * 0), goal * 0.0
    return jax.lax.while_loop(lambda s: (s[2] != goal) & (s[3] < jnp.inf), step, start)[3]


@dataclass(frozen=True, slots=True)
class Loop:
    """A function of one example, the same by hand, inputs for so many lanes, and goals by the number of lanes."""

    solve: Callable[..., Any]
    by_hand: Callable[..., Any]
    inputs: Callable[[int], tuple[Any, ...]]
    goals: dict[int, float]


def _keys(lanes: int) -> jax.Array:
    return jax.random.split(jax.random.key(0), lanes)


def _graphs(lanes: int) -> tuple[Any, ...]:
    rng = np.random.default_rng(0)
    lengths = np.where(rng.random((lanes, NODES, NODES)) < 0.2, rng.integers(1, 20, (lanes, NODES, NODES)), np.inf)
    return jnp.asarray(lengths, jnp.float32), jnp.asarray(rng.integers(0, NODES, lanes), jnp.int32)


USUAL = {32: 1.0, 256: 1.5, 2048: 2.0}
LOOPS = {
    "slice": Loop(slice_sampling, slice_by_hand, lambda n: (_keys(n), jnp.linspace(-1.0, 5.0, n)), USUAL),
    "elliptical": Loop(elliptical_slice, elliptical_by_hand, lambda n: (_keys(n), jnp.ones((n, SIZE))), USUAL),
    "scanning": Loop(scanning, scanning_by_hand, _graphs, USUAL),
    "fib": Loop(fib, fib_by_hand, lambda n: (jnp.arange(n, dtype=jnp.int32) % 16,), {16: 0.8}),
}


def measured(name: str, lanes: int, repeats: int) -> str:
    """Compare the results of one loop with its peer's, and return a line of the table."""
    loop = LOOPS[name]
    inputs = jax.device_put(loop.inputs(lanes))
    ours, peer = pcbatch.batch(loop.solve), jax.jit(jax.vmap(loop.by_hand))
    check_lanes_agree(ours(*inputs), peer(*inputs), 0.99)  # rounding may send a few another way
    theirs, mine, ratio = paired_cpu(lambda: peer(*inputs), lambda: ours(*inputs), repeats)
    goal = loop.goals.get(lanes)
    counts = ours.profile(*inputs)
    visits = sum(block.visits for block in counts.blocks)
    wanted = "" if goal is None else f"{goal:g} {'met' if ratio >= goal else 'MISSED'}"
    times = f"{1e3 * mine:.1f} | {1e3 * theirs:.1f}"
    return f"| {name} | {lanes} | {times} | {ratio:.2f} | {wanted} | {visits} | {counts.utilisation:.0%} |"


def main(arguments: Sequence[str] | None = None) -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--lanes", type=int, nargs="*", help="instead of those that a goal is for")
    parser.add_argument("--only", nargs="*", choices=LOOPS, default=list(LOOPS))
    parser.add_argument("--repeats", type=int, default=11)
    options = parser.parse_args(arguments)
    print("CPU milliseconds; ratio: by hand over ours\n")
    print("| loop | lanes | ours | by hand | ratio | goal | visits | lanes in use |\n|---|---|---|---|---|---|---|---|")
    for name in options.only:
        for lanes in options.lanes or LOOPS[name].goals:
            print(measured(name, lanes, options.repeats), flush=True)


if __name__ == "__main__":
    os.environ.setdefault("NPROC", "1")
    main()
