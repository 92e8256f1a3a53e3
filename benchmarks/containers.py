"""Changes in place and containers of Python against the same programs by hand, with arrays: `python -m
benchmarks.containers`.

Each pair is two functions of one lane, both compiled by pcbatch: one in plain Python (`table[i][j] = x`, `append`), one
with `.at[].set` and counters. CPU seconds of the process, in turns, one thread of XLA; ratios are medians of pairs.
"""

from __future__ import annotations

import argparse
import os
from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

os.environ.setdefault("NPROC", "1")

import jax
import jax.numpy as jnp
import numpy as np

import pcbatch
from benchmarks import list_programs as lists
from benchmarks.common import Row, paired_cpu, report

# One longest common subsequence, a table of a cell for each pair of letters, in four ways.


def lcs_argument(a, b, n, m, table):
    """Fill a table that the caller gives."""
    for i in range(1, n + 1):
        for j in range(1, m + 1):
            if a[i - 1] == b[j - 1]:
                table[i][j] = table[i - 1][j - 1] + 1
            else:
                table[i][j] = max(table[i - 1][j], table[i][j - 1])
    return table[n][m]


def lcs_argument_at(a, b, n, m, table):
    """Fill a table that the caller gives, by hand."""
    for i in range(1, n + 1):
        for j in range(1, m + 1):
            if a[i - 1] == b[j - 1]:
                table = table.at[i, j].set(table[i - 1, j - 1] + 1)
            else:
                table = table.at[i, j].set(jnp.maximum(table[i - 1, j], table[i, j - 1]))
    return table[n, m]


def paths(cost, n):
    """Fill a table of zeros of a known size: the cheapest path to each cell."""
    side = cost.shape[0]
    table = jnp.zeros((side, side), jnp.int32)
    for i in range(1, n):
        for j in range(1, n):
            table[i, j] = cost[i] ^ cost[j] + min(table[i - 1, j], table[i, j - 1])
    return table[n - 1, n - 1]


def paths_at(cost, n):
    """Fill a table of zeros of a known size, by hand."""
    side = cost.shape[0]
    table = jnp.zeros((side, side), jnp.int32)
    for i in range(1, n):
        for j in range(1, n):
            table = table.at[i, j].set(cost[i] ^ cost[j] + jnp.minimum(table[i - 1, j], table[i, j - 1]))
    return table[n - 1, n - 1]


def paths_lists(cost, n):
    """Fill a table of lists."""
    table = [[0] * n for _ in range(n)]
    for i in range(1, n):
        for j in range(1, n):
            table[i][j] = cost[i] ^ cost[j] + min(table[i - 1][j], table[i][j - 1])
    return table[n - 1][n - 1]


# A stack.


def stack_list(n, seed):
    """Push and pop at random; sum what comes off."""
    stack = []
    total = 0
    x = seed
    for _ in range(n):
        x = (x * 1103 + 12345) % 65536
        if x % 3 != 0:
            stack.append(x)
        elif stack:
            total += stack.pop()
    return total, len(stack)


def stack_by_hand(n, seed):
    """The stack as an array and a counter."""
    stack = jnp.zeros(256, jnp.int32)
    size = 0
    total = 0
    x = seed
    for _ in range(n):
        x = (x * 1103 + 12345) % 65536
        if x % 3 != 0:
            stack = stack.at[size].set(x)
            size += 1
        elif size > 0:
            size -= 1
            total += stack[size]
    return total, size


# A queue.


def bfs_deque(edges, start):
    """Sum of the distances of all nodes of a graph from one, by a deque."""
    distance = jnp.full(edges.shape[0], -1)
    distance[start] = 0
    queue = deque([start])
    total = 0
    while queue:
        node = queue.popleft()
        for k in range(edges.shape[1]):
            other = edges[node, k]
            if distance[other] < 0:
                distance[other] = distance[node] + 1
                total += distance[node] + 1
                queue.append(other)
    return total


def bfs_ring(edges, start):
    """The queue as a ring in an array."""
    nodes = edges.shape[0]
    distance = jnp.full(nodes, -1).at[start].set(0)
    ring = jnp.zeros(nodes, jnp.int32).at[0].set(start)
    head, size = 0, 1
    total = 0
    while size > 0:
        node = ring[head]
        head = (head + 1) % nodes
        size -= 1
        for k in range(edges.shape[1]):
            other = edges[node, k]
            if distance[other] < 0:
                distance = distance.at[other].set(distance[node] + 1)
                total += distance[node] + 1
                ring = ring.at[(head + size) % nodes].set(other)
                size += 1
    return total


# Lists of a known or a bounded length.


def sieve_list(n):
    """Count primes in a list of bools."""
    prime = [True] * (n + 1)
    count = 0
    for i in range(2, n + 1):
        if prime[i]:
            count += 1
            for j in range(i * i, n + 1, i):
                prime[j] = False
    return count


def sieve_array(n):
    """Count primes in an array of bools."""
    prime = jnp.ones(1024, bool)
    count = 0
    for i in range(2, n + 1):
        if prime[i]:
            count += 1
            for j in range(i * i, n + 1, i):
                prime = prime.at[j].set(False)
    return count


def insertion_sort(xs, n):
    """Sort in place."""
    for i in range(1, n):
        x = xs[i]
        j = i
        while j > 0 and xs[j - 1] > x:
            xs[j] = xs[j - 1]
            j -= 1
        xs[j] = x
    return xs


def insertion_sort_at(xs, n):
    """Sort by hand."""
    for i in range(1, n):
        x = xs[i]
        j = i
        while j > 0 and xs[j - 1] > x:
            xs = xs.at[j].set(xs[j - 1])
            j -= 1
        xs = xs.at[j].set(x)
    return xs


# A dict.


def count_dict(xs, n):
    """Count numbers in a dict; the most frequent one's count."""
    counts = {}
    best = 0
    for i in range(n):
        x = xs[i]
        if x in counts:
            counts[x] += 1
        else:
            counts[x] = 1
        best = max(best, counts[x])
    return best


def count_get(xs, n):
    """Count numbers in a dict by `get`; the most frequent one's count."""
    counts = {}
    best = 0
    for i in range(n):
        x = xs[i]
        counts[x] = counts.get(x, 0) + 1
        best = max(best, counts[x])
    return best


def count_array(xs, n):
    """Count small numbers in an array."""
    counts = jnp.zeros(64, jnp.int32)
    best = 0
    for i in range(n):
        x = xs[i]
        counts = counts.at[x].add(1)
        best = jnp.maximum(best, counts[x])
    return best


def count_table(xs, n):
    """Count numbers in a table with open addressing."""
    keys = jnp.full(128, -1)
    counts = jnp.zeros(128, jnp.int32)
    best = 0
    for i in range(n):
        x = xs[i]
        place = (x * 40503 >> 7) % 128
        while keys[place] != -1 and keys[place] != x:
            place = (place + 1) % 128
        keys = keys.at[place].set(x)
        counts = counts.at[place].add(1)
        best = jnp.maximum(best, counts[place])
    return best


@dataclass(frozen=True, slots=True)
class Pair:
    """A program in plain Python and the same by hand, with arguments for so many lanes.

    Attributes:
        most: The goal: the plain program's CPU seconds over those of the one by hand.
        of_plain: Options of the plain program.
    """

    plain: Callable[..., Any]
    by_hand: Callable[..., Any]
    args: Callable[[np.random.Generator, int, int], tuple[Any, ...]]
    lanes: int
    most: float | None
    size: int = 1000
    of_plain: dict[str, Any] | None = None


def _words(rng: np.random.Generator, lanes: int, size: int) -> tuple[Any, ...]:
    a, b = (rng.integers(0, 4, (lanes, size)).astype(np.int32) for _ in range(2))
    n = np.full(lanes, size - 1, np.int32)
    return a, b, n, n, np.zeros((lanes, size, size), np.int32)


def _costs(rng: np.random.Generator, lanes: int, size: int) -> tuple[Any, ...]:
    return rng.integers(0, 100, (lanes, size)).astype(np.int32), np.full(lanes, size, np.int32)


def _stack(rng: np.random.Generator, lanes: int, size: int) -> tuple[Any, ...]:
    return np.full(lanes, size, np.int32), rng.integers(0, 65536, lanes).astype(np.int32)


def _graph(rng: np.random.Generator, lanes: int, size: int) -> tuple[Any, ...]:
    return rng.integers(0, size, (lanes, size, 3)).astype(np.int32), np.zeros(lanes, np.int32)


def _bounds(rng: np.random.Generator, lanes: int, size: int) -> tuple[Any, ...]:
    return (rng.integers(size // 2, size + 1, lanes).astype(np.int32),)


def _numbers(rng: np.random.Generator, lanes: int, size: int) -> tuple[Any, ...]:
    return rng.normal(size=(lanes, size)).astype(np.float32), np.full(lanes, size, np.int32)


def _small(rng: np.random.Generator, lanes: int, size: int) -> tuple[Any, ...]:
    return rng.integers(0, 64, (lanes, size)).astype(np.int32), np.full(lanes, size, np.int32)


def _things(rng: np.random.Generator, lanes: int, size: int) -> tuple[Any, ...]:
    weights, values = (rng.integers(1, 40, (lanes, size)).astype(np.int32) for _ in range(2))
    return weights, values, rng.integers(150, 250, lanes).astype(np.int32)


def _matrices(rng: np.random.Generator, lanes: int, size: int) -> tuple[Any, ...]:
    a, b = (rng.integers(0, 100, (lanes, size, size)).astype(np.int32) for _ in range(2))
    return a, b, np.full(lanes, size, np.int32)


def _weights(rng: np.random.Generator, lanes: int, size: int) -> tuple[Any, ...]:
    return _matrices(rng, lanes, size)[1:]


def _life(rng: np.random.Generator, lanes: int, size: int) -> tuple[Any, ...]:
    cells = rng.integers(0, 2, (lanes, size, size)).astype(np.int32)
    return cells, np.full(lanes, size, np.int32), np.full(lanes, 3, np.int32)


def _signed(rng: np.random.Generator, lanes: int, size: int) -> tuple[Any, ...]:
    return rng.integers(-5, 6, (lanes, size)).astype(np.int32), np.full(lanes, size, np.int32)


STORE = 1 / 0.95
PAIRS = {
    "table, an argument": Pair(lcs_argument, lcs_argument_at, _words, 8, STORE),
    "table, jnp.zeros": Pair(paths, paths_at, _costs, 8, STORE),
    "table, lists": Pair(paths_lists, paths_at, _costs, 8, STORE, 1000, {"max_length": 1024}),
    "table, small lists": Pair(paths_lists, paths_at, _costs, 64, STORE, 128, {"max_length": 128}),
    "stack": Pair(stack_list, stack_by_hand, _stack, 256, 1.5, 500, {"max_length": 256}),
    "queue": Pair(bfs_deque, bfs_ring, _graph, 256, 1.5, 256, {"max_length": 256}),
    "sieve": Pair(sieve_list, sieve_array, _bounds, 256, 1.5, 1000, {"max_length": 1024}),
    "insertion sort": Pair(insertion_sort, insertion_sort_at, _numbers, 64, STORE, 128),
    "knapsack": Pair(lists.knapsack, lists.knapsack_at, _things, 64, STORE, 40, {"max_length": 256}),
    "matrix product": Pair(lists.product, lists.product_at, _matrices, 64, STORE, 32, {"max_length": 32}),
    "shortest paths": Pair(lists.floyd, lists.floyd_at, _weights, 64, STORE, 32, {"max_length": 32}),
    "Pascal's triangle": Pair(lists.pascal, lists.pascal_at, _bounds, 64, STORE, 60, {"max_length": 64}),
    "increasing subsequence": Pair(lists.increasing, lists.increasing_at, _signed, 64, STORE, 128, {"max_length": 128}),
    "prefix sums": Pair(lists.prefix, lists.prefix_at, _signed, 64, STORE, 127, {"max_length": 128}),
    "game of life": Pair(lists.life, lists.life_at, _life, 64, STORE, 16, {"max_length": 16}),
    "set, in and add": Pair(lists.seen_set, lists.seen_table, _small, 256, 2, 1000, {"max_length": 64}),
    "dict as a memo": Pair(lists.memo_dict, lists.memo_table, _small, 256, 2, 1000, {"max_length": 64}),
    "Counter": Pair(lists.count_counter, count_table, _small, 256, 2, 1000, {"max_length": 64}),
    "counts, in and +=": Pair(count_dict, count_table, _small, 256, 2, 1000, {"max_length": 64}),
    "counts, get": Pair(count_get, count_table, _small, 256, 2, 1000, {"max_length": 64}),
    "counts, get, over an array": Pair(count_get, count_array, _small, 256, None, 1000, {"max_length": 64}),
}


def measure(name: str, repeats: int) -> Row:
    """Return the ratio of CPU seconds of one pair, after a comparison of the results."""
    pair = PAIRS[name]
    args = tuple(map(jnp.asarray, pair.args(np.random.default_rng(0), pair.lanes, pair.size)))
    plain, by_hand = pcbatch.batch(pair.plain, **(pair.of_plain or {})), pcbatch.batch(pair.by_hand)
    jax.tree.map(np.testing.assert_array_equal, plain(*args), by_hand(*args))
    ours, theirs, ratio = paired_cpu(lambda: plain(*args), lambda: by_hand(*args), repeats)
    against = f"by hand, {theirs * 1e3:.4g} ms; ours {ours * 1e3:.4g} ms, {pair.lanes} lanes"
    return Row(name, ratio, "x", pair.most, baseline=against, against=theirs)


def parse(arguments: Sequence[str] | None) -> argparse.Namespace:
    """The command line."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--only", action="append", choices=PAIRS, help="a pair (can be repeated)")
    parser.add_argument("--repeats", type=int, default=7)
    parser.add_argument("--json", metavar="OUT")
    return parser.parse_args(arguments)


def main(arguments: Sequence[str] | None = None) -> None:
    """Measure and print."""
    chosen = parse(arguments)
    rows = []
    for name in chosen.only or PAIRS:
        rows.append(measure(name, chosen.repeats))
        print(rows[-1].name, f"{rows[-1].value:.3f}", rows[-1].baseline, flush=True)
    report("containers and changes in place over the same by hand, CPU seconds", rows, chosen.json)


if __name__ == "__main__":
    main()
