"""Dijkstra's algorithm with a heap, in lanes, against CPython's `heapq` one search after the other.

    NPROC=1 python -m benchmarks.heap_searches [--lanes 256] [--nodes 64]

`heap in arrays` sifts by hand in two arrays; `heapq` is the plain function that CPython runs too, as it stands. Graphs
have four ways out of each node, as lists of neighbours, and a search ends at its goal. Results are compared before
anything is timed. CPU seconds of one thread, in turn, the median of the ratios of pairs: above 1, lanes are faster.
"""

from __future__ import annotations

import argparse
import heapq
import os
from collections.abc import Sequence
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

import pcbatch
from benchmarks.common import paired_cpu

WAYS = 4  # out of each node
GOAL = 1.0  # times as fast as CPython, of a heap in arrays on 256 lanes


def by_heapq(nodes, lengths, goal):
    """The length of the shortest way from node 0 to the goal, by `heapq`."""
    shortest = [float("inf")] * len(nodes)
    shortest[0] = 0.0
    heap = [(0.0, 0)]
    while heap:
        distance, node = heapq.heappop(heap)
        if node == goal:
            return distance
        if distance > shortest[node]:
            continue
        for k in range(len(nodes[node])):
            other = nodes[node][k]
            new = distance + lengths[node][k]
            if new < shortest[other]:
                shortest[other] = new
                heapq.heappush(heap, (new, other))
    return float("inf")


def in_arrays(nodes, lengths, goal):
    """The same with a heap in two arrays, of distances and of nodes."""
    count = nodes.shape[0]
    shortest = jnp.full(count, jnp.inf).at[0].set(0.0)
    keys = jnp.zeros(count * WAYS + 1)
    items = jnp.zeros(count * WAYS + 1, jnp.int32)
    size = 1
    while size > 0:
        distance, node = keys[0], items[0]
        size = size - 1
        key, item = keys[size], items[size]
        place, child = 0, 1
        while child < size:
            if child + 1 < size and keys[child + 1] < keys[child]:
                child = child + 1
            if keys[child] >= key:
                break
            keys = keys.at[place].set(keys[child])
            items = items.at[place].set(items[child])
            place = child
            child = 2 * place + 1
        keys = keys.at[place].set(key)
        items = items.at[place].set(item)
        if node == goal:
            return distance
        if distance <= shortest[node]:
            for k in range(WAYS):
                other = nodes[node, k]
                new = distance + lengths[node, k]
                if new < shortest[other]:
                    shortest = shortest.at[other].set(new)
                    at = size
                    size = size + 1
                    while at > 0 and keys[(at - 1) // 2] > new:
                        up = (at - 1) // 2
                        keys = keys.at[at].set(keys[up])
                        items = items.at[at].set(items[up])
                        at = up
                    keys = keys.at[at].set(new)
                    items = items.at[at].set(other)
    return jnp.inf


def graphs(lanes: int, nodes: int) -> tuple[np.ndarray, ...]:
    """Return neighbours and lengths [lanes, nodes, WAYS], and goals."""
    rng = np.random.default_rng(0)
    shape = lanes, nodes, WAYS
    neighbours = rng.integers(0, nodes, shape).astype(np.int32)
    return neighbours, rng.integers(1, 20, shape).astype(np.float32), rng.integers(0, nodes, lanes).astype(np.int32)


def measured(title: str, solve: Any, lanes: int, nodes: int, repeats: int) -> str:
    """Compare the results of one function with CPython's, and return a line of the table."""
    arrays = graphs(lanes, nodes)
    examples = [(a.tolist(), b.tolist(), int(c)) for a, b, c in zip(*arrays, strict=True)]
    inputs, ours = jax.device_put(arrays), pcbatch.batch(solve)

    def plain() -> list[float]:
        return [by_heapq(*example) for example in examples]

    np.testing.assert_allclose(ours(*inputs), plain())
    theirs, mine, ratio = paired_cpu(plain, lambda: ours(*inputs), repeats)
    wanted = f"{GOAL:g} {'met' if ratio >= GOAL else 'MISSED'}" if solve is in_arrays and lanes == 256 else ""
    return f"| {title} | {lanes} | {1e3 * mine:.1f} | {1e3 * theirs:.1f} | {ratio:.2f} | {wanted} |"


def main(arguments: Sequence[str] | None = None) -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--lanes", type=int, nargs="*", default=[256])
    parser.add_argument("--nodes", type=int, default=64)
    parser.add_argument("--repeats", type=int, default=11)
    options = parser.parse_args(arguments)
    print("| search | lanes | ours, ms | CPython, ms | ratio | goal |\n|---|---|---|---|---|---|")
    for title, solve in (("heap in arrays", in_arrays), ("heapq", by_heapq)):
        for lanes in options.lanes:
            print(measured(title, solve, lanes, options.nodes, options.repeats), flush=True)


if __name__ == "__main__":
    os.environ.setdefault("NPROC", "1")
    main()
