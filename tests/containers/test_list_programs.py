"""Programs as they are written in plain Python, with lists that depend on the lane, against the plain function."""

from __future__ import annotations

import re
from collections import deque
from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import pcbatch
from pcbatch.data.host.ragged import Ragged
from tests.runtime.test_hlo import LANES, compiled_text, copies

pytestmark = pytest.mark.promotion("standard")


def sieve(n):
    prime = [True] * (n + 1)
    count = 0
    for i in range(2, n + 1):
        if prime[i]:
            count += 1
            for j in range(i * i, n + 1, i):
                prime[j] = False
    return count


def halves(n):
    stack, total = [n], 0
    while stack:
        k = stack.pop()
        total += k
        if k > 1:
            stack.append(k // 2)
            stack.append(k - 1 - k // 2)
    return total


def squares(n):
    found = []
    for k in range(n):
        found.append(k * k)
    return found


def knapsack(n, room):
    best = [[0] * (room + 1) for _ in range(n + 1)]
    for i in range(1, n + 1):
        for j in range(room + 1):
            best[i][j] = best[i - 1][j]
            if j >= i:
                best[i][j] = max(best[i][j], best[i - 1][j - i] + i * 3 % 7)
    return best[n][room]


def pascal(n):
    rows = [[1]]
    for i in range(1, n):
        above, row = rows[-1], [1]
        for k in range(1, i):
            row.append(above[k - 1] + above[k])
        row.append(1)
        rows.append(row)
    return sum(rows[-1]), rows[n // 2][0], len(rows)


def merge_sort(n):
    xs, x = [], n
    for _ in range(n):
        x = (x * 7 + 3) % 13
        xs.append(x)
    return merged(xs)


def merged(xs):
    if len(xs) <= 1:
        return xs
    middle = len(xs) // 2
    a, b = merged(xs[:middle]), merged(xs[middle:])
    out, i, j = [], 0, 0
    while i < len(a) and j < len(b):
        if a[i] <= b[j]:
            out.append(a[i])
            i += 1
        else:
            out.append(b[j])
            j += 1
    out.extend(a[i:])
    return out + b[j:]


def breadth_first(n, goal):
    distance = [-1] * 12
    distance[n] = 0
    queue = deque([n])
    while queue:
        at = queue.popleft()
        if at == goal:
            return distance[at]
        for step in (5, 7):
            following = (at + step) % 12
            if distance[following] < 0:
                distance[following] = distance[at] + 1
                queue.append(following)
    return -1


def greatest_in_windows(n, size):
    xs = [(7 * i * i + 3) % 11 for i in range(12)]
    queue, total = deque(), 0
    for i in range(n):
        while queue and xs[queue[-1]] <= xs[i]:
            queue.pop()
        queue.append(i)
        if queue[0] <= i - size:
            queue.popleft()
        if i >= size - 1:
            total += xs[queue[0]]
    return total


def run_lengths(n):
    runs = []
    for i in range(n):
        value = i * i % 3
        if runs and runs[-1][0] == value:
            runs[-1][1] += 1
        else:
            runs.append([value, 1])
    total = 0
    for value, count in runs:
        total = total * 5 + value * count
    return total, len(runs)


def two_pointers(n, goal):
    xs = list(range(n))
    i, j = 0, len(xs) - 1
    while i < j:
        total = xs[i] + xs[j]
        if total == goal:
            return i, j
        if total < goal:
            i += 1
        else:
            j -= 1
    return -1, -1


def reachable(n):
    neighbours = [[] for _ in range(5)]
    for i in range(n):
        neighbours[i % 5].append((i * 3 + 1) % 5)
        neighbours[(i * 3 + 1) % 5].append(i % 5)
    seen, stack, count = [False] * 5, [0], 0
    while stack:
        at = stack.pop()
        if not seen[at]:
            seen[at] = True
            count += 1
            for other in neighbours[at]:
                if not seen[other]:
                    stack.append(other)
    return count


def methods(n):
    xs = [5, 2, 9, n]
    xs.insert(1, n)
    xs.remove(2)
    xs.sort(reverse=True)
    del xs[0]
    xs[1:2] = [7, 8]
    places = xs.index(8), xs.count(n), 9 in xs, xs == sorted(xs)
    xs.reverse()
    xs += [n] * n
    return *places, xs[0], len(xs), max(xs), min(xs), xs[-2:][0], sum(xs[::-2])


def by_keys(n):
    pairs = []
    for i in range(n):
        pairs.append((i * 5 % 7, i))
    pairs.sort(key=lambda pair: (pair[0] % 3, -pair[1]))
    total = 0
    for a, b in pairs:
        total = (total * 3 + a * b) % 1000
    return total, max(pairs, key=lambda pair: pair[1] - pair[0])


def reversed_in_place(n):
    xs = [n, 5, 2 * n, 9]
    xs[1:3] = reversed(xs[1:3])
    ys = list(range(n))
    ys[:] = reversed(ys)
    i = n // 2
    ys[i:] = reversed(ys[i:])
    return xs, ys


def made_one_by_one(n):
    xs = list(range(n + 2))
    xs[n : n + 1] = (k * k for k in range(n))
    xs[:2] = map(lambda k: k + n, xs)
    xs[1:] = filter(lambda k: k != 5, xs[1:])
    return xs


def of_other_containers(n):
    xs, ys = [3, 1, 2], [3, 1, 2]
    xs[1:] = {n: 1}
    ys[:2] = range(n)
    ys[len(ys) :] = (n, 4)
    return xs, ys


PROGRAMS: dict[Callable[..., Any], tuple[list[int], ...]] = {
    sieve: ([10, 1, 30],), halves: ([5, 1, 20],), squares: ([3, 0, 10],), knapsack: ([3, 4], [5, 7]),
    pascal: ([1, 2, 5],), merge_sort: ([0, 1, 12],), breadth_first: ([0, 3], [11, 3]),
    greatest_in_windows: ([5, 12], [2, 4]), run_lengths: ([1, 6, 10],), two_pointers: ([5, 8], [4, 100]),
    reversed_in_place: ([0, 3, 5],), made_one_by_one: ([0, 3, 5],), of_other_containers: ([0, 1, 5],),
    reachable: ([0, 3, 5],), methods: ([1, 9, 3],), by_keys: ([1, 4, 9],),
}  # fmt: skip


@pytest.mark.parametrize("fn", PROGRAMS, ids=lambda fn: fn.__name__)
def test_each_lane_has_what_the_plain_function_returns(fn: Callable[..., Any]) -> None:
    columns = PROGRAMS[fn]
    results = pcbatch.batch(fn)(*map(jnp.array, columns))
    for lane, args in enumerate(zip(*columns, strict=True)):
        got = jax.tree.map(lambda leaf, lane=lane: _of_lane(leaf, lane), results, is_leaf=_is_ragged)
        assert got == fn(*args)


def _is_ragged(value: Any) -> bool:
    return isinstance(value, Ragged)


def _of_lane(leaf: Any, lane: int) -> Any:
    return leaf.tolist()[lane] if _is_ragged(leaf) else np.asarray(leaf)[lane].tolist()


def index(xs, n):
    return xs[n]


def pop(xs, n):
    return xs[: n - 3].pop()


def find(xs, n):
    return xs.index(n + 10)


def greatest(xs, n):
    return max(xs[n:])


def table(xs, n):
    return (3, 4, 5)[n]


def pair(xs, n):
    a, b = xs[n - 1 :]
    return a + b


@pytest.mark.parametrize("fn", [index, pop, find, greatest, table, pair], ids=lambda fn: fn.__name__)
def test_a_lane_fails_where_the_plain_function_raises(fn: Callable[..., Any]) -> None:
    def body(n):
        return fn([10, 11, 12], n)

    with pytest.raises((IndexError, ValueError)) as plain:
        fn([10, 11, 12], 3)
    with pytest.raises(pcbatch.errors.BatchRuntimeError, match=re.escape(type(plain.value).__name__)):
        pcbatch.batch(body)(jnp.array([2, 3]))


def swaps(n):
    xs = [0] * 37
    for i in range(n):
        xs[i], xs[n - 1 - i] = i, xs[i]
    return xs[0]


def diagonal(n):
    grid = [[0] * 37 for _ in range(41)]
    for i in range(n):
        grid[i][i] = i
        grid[i][i + 1] = grid[i][i] + 1
    return grid[n - 1][n]


@pytest.mark.in_place
@pytest.mark.parametrize("fn", [squares, halves, sieve, swaps, diagonal], ids=lambda fn: fn.__name__)
def test_no_list_is_copied_in_a_loop(fn: Callable[..., Any]) -> None:
    text = compiled_text(pcbatch.batch(fn), np.zeros(LANES, np.int32))
    assert f"[{LANES},3" in text or f"[{LANES},41" in text
    assert copies(text) == []


def drawn_from_listed_keys(key, n):
    keys, total = [], 0.0
    for i in range(n):
        keys.append(jax.random.fold_in(key, i))
    while keys:
        total += jax.random.uniform(keys.pop())
    return total


def drawn_from_stored_keys(key, n):
    keys, total = {}, 0.0
    for i in range(n):
        keys[i] = jax.random.fold_in(key, i)
    for each in keys.values():
        total += jax.random.uniform(each)
    return total


@pytest.mark.parametrize("impl", ["threefry2x32", "rbg", "unsafe_rbg"])
@pytest.mark.parametrize("f", [drawn_from_listed_keys, drawn_from_stored_keys])
def test_empty_containers_take_prng_keys(f, impl):
    keys, counts = jax.random.split(jax.random.key(0, impl=impl), 3), np.array([1, 2, 0], np.int32)
    expected = [float(f(key, int(n))) for key, n in zip(keys, counts, strict=True)]
    np.testing.assert_allclose(pcbatch.batch(f)(keys, counts), expected, rtol=1e-6)


def test_known_lists_of_lists_beside_those_of_the_lane_with_64_bits() -> None:
    def f(n):  # type: ignore[no-untyped-def]
        xs = list(range(n))
        g = [[x] for x in xs] + [[n], [n + 1]]
        g += [[n], [n + 2]]
        h = [[x, 1] for x in xs]
        h.extend([[n, 3], [4, n]])
        h[0:1] = [[n, 1], [n, 2]]
        return g, h, [[n], [7]] + [[x] for x in xs], [[str(x)] for x in xs] + [["q"], ["r"]]

    with jax.enable_x64(True):
        found = pcbatch.batch(f)(np.array([0, 3]))
        for lane, n in enumerate((0, 3)):
            assert [[list(row) for row in part[lane]] for part in found] == [[list(r) for r in p] for p in f(n)]
