"""Kernels, copies, loops and bytes of a trip of some programs: `python -m benchmarks.kernels [--time]`

On a CPU a trip of a small program costs its kernels. `--time` adds CPU microseconds a call (the least of several, one
XLA thread), with registers in arrays of their own and as rows of one array.
"""

from __future__ import annotations

import argparse
import os
import time
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

import pcbatch
from benchmarks.programs import collatz
from benchmarks.recursions import ackermann, fib, queens
from benchmarks.trip_kernels import Kernels, per_trip
from pcbatch.runtime.vm import register_groups


def slice_sample(key, x, draws):
    """Slice sampling of a normal distribution: a loop that steps out, and one that shrinks."""
    total = 0.0
    while draws > 0:
        key, height_key, place_key = jax.random.split(key, 3)
        level = -0.5 * x * x - jax.random.exponential(height_key)
        low = x - jax.random.uniform(place_key)
        high = low + 1.0
        while -0.5 * low * low > level:
            low = low - 1.0
        while -0.5 * high * high > level:
            high = high + 1.0
        key, part = jax.random.split(key)
        new = low + (high - low) * jax.random.uniform(part)
        while -0.5 * new * new < level:
            if new < x:
                low = new
            else:
                high = new
            key, part = jax.random.split(key)
            new = low + (high - low) * jax.random.uniform(part)
        x = new
        total = total + x
        draws = draws - 1
    return total


def shortest_ways(lengths, start):
    """Dijkstra's algorithm, the nearest node found by looking at all."""
    nodes = lengths.shape[0]
    distance = jnp.full(nodes, jnp.inf).at[start].set(0.0)
    left = jnp.ones(nodes, bool)
    while jnp.any(left & (distance < jnp.inf)):
        node = jnp.argmin(jnp.where(left, distance, jnp.inf))
        left = left.at[node].set(False)
        other = 0
        while other < nodes:
            length = lengths[node, other]
            if length > 0 and distance[node] + length < distance[other]:
                distance = distance.at[other].set(distance[node] + length)
            other = other + 1
    return distance


def oscillator(y, v, end):
    """An oscillator by the midpoint rule, with steps that adapt themselves."""
    t, step, taken = 0.0, 0.1, 0
    while t < end:
        half_y, half_v = y + 0.5 * step * v, v - 0.5 * step * y * y * y
        new_y, new_v = y + step * half_v, v - step * half_y * half_y * half_y
        error = jnp.abs(new_y - (y + step * v)) + jnp.abs(new_v - (v - step * y * y * y))
        if error < 0.01:
            y, v, t, taken = new_y, new_v, t + step, taken + 1
        step = step * jnp.clip(0.9 * jnp.sqrt(0.01 / (error + 1e-9)), 0.3, 2.0)
    return y, v, taken


def _numbers(low: int, high: int, lanes: int) -> np.ndarray:
    return np.random.default_rng(0).integers(low, high, lanes).astype(np.int32)


def _floats(lanes: int, seed: int = 0) -> np.ndarray:
    return np.random.default_rng(seed).uniform(0.5, 1.5, lanes).astype(np.float32)


def _graphs(lanes: int) -> np.ndarray:
    rng = np.random.default_rng(0)
    shape = (lanes, 8, 8)
    return (rng.integers(1, 10, shape) * (rng.random(shape) < 0.4)).astype(np.float32)


def _boards(lanes: int) -> tuple[np.ndarray, ...]:
    nothing = np.zeros(lanes, np.int32)
    return ((1 << _numbers(4, 7, lanes)) - 1).astype(np.int32), nothing, nothing, nothing


class Program(NamedTuple):
    """A function of one example, and inputs for so many lanes."""

    function: Callable[..., Any]
    inputs: Callable[[int], tuple[Any, ...]]


PROGRAMS = {
    "collatz": Program(collatz, lambda lanes: (_numbers(1, 200, lanes),)),
    "fib": Program(fib, lambda lanes: (_numbers(5, 16, lanes),)),
    "ackermann": Program(ackermann, lambda lanes: (_numbers(0, 2, lanes), _numbers(0, 5, lanes))),
    "queens": Program(queens, _boards),
    "slice": Program(
        slice_sample,
        lambda lanes: (jax.random.split(jax.random.key(0), lanes), _floats(lanes), np.full(lanes, 50, np.int32)),
    ),
    "shortest-ways": Program(shortest_ways, lambda lanes: (_graphs(lanes), _numbers(0, 8, lanes))),
    "oscillator": Program(oscillator, lambda lanes: (_floats(lanes), _floats(lanes, 1), 5 * _floats(lanes, 2))),
}


def count(program: Program, lanes: int = 256) -> Kernels:
    """Compile a program for so many lanes, with integers that wrap around, and count what a trip does."""
    args = program.inputs(lanes)
    return per_trip(pcbatch.batch(program.function, numbers="jax").lower(*args).compile().as_text())


def measure(program: Program, lanes: int, repeats: int = 15) -> tuple[float, float]:
    """The CPU microseconds of a call, the least of several: with registers apart, and in rows; in turn."""
    args = jax.tree.map(jnp.asarray, program.inputs(lanes))
    calls, times = [], [float("inf"), float("inf")]
    for register_groups.ENABLED in (False, True):
        calls.append(pcbatch.batch(program.function).lower(*args).compile())
        jax.block_until_ready(calls[-1](*args))
    for _ in range(repeats):
        for k, call in enumerate(calls):
            start = time.process_time()
            jax.block_until_ready(call(*args))
            times[k] = min(times[k], time.process_time() - start)
    return times[0] * 1e6, times[1] * 1e6


def main(arguments: Sequence[str] | None = None) -> None:
    """Print a row for each program."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--lanes", type=int, nargs="+", default=[16, 256, 2048])
    parser.add_argument("--only", choices=PROGRAMS, action="append", metavar="NAME")
    parser.add_argument("--time", action="store_true", help="measure calls as well")
    chosen = parser.parse_args(arguments)
    heads = ["program", "lanes", "kernels", "copies", "loops", "KiB", *(["us apart", "us rows"] if chosen.time else [])]
    print("{:16} {:>6} {:>8} {:>7} {:>6} {:>8}".format(*heads), *(f"{head:>9}" for head in heads[6:]))
    for name in chosen.only or PROGRAMS:
        for lanes in chosen.lanes:
            found = count(PROGRAMS[name], lanes)
            text = f"{name:16} {lanes:6} {found.kernels:8} {found.copies:7} {found.loops:6} {found.bytes / 1024:8.1f}"
            apart_rows = measure(PROGRAMS[name], lanes) if chosen.time else ()
            print(text + "".join(f" {each:9.0f}" for each in apart_rows), flush=True)


if __name__ == "__main__":
    os.environ.setdefault("NPROC", "1")
    main()
