"""Comprehensions, generator expressions and consumers of iterables whose bounds, conditions or calls are the lane's."""

from __future__ import annotations

import collections
import itertools
import math
from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import pcbatch
from pcbatch.errors import BatchRuntimeError, CompileError

pytestmark = pytest.mark.share(2)

NUMBERS = [1, 2, 6, 9, 11]


@pcbatch.batch
def collatz(n):
    k = 0
    while n != 1:
        n = n // 2 if n % 2 == 0 else 3 * n + 1
        k += 1
    return k


def sums(n):
    pairs = sum(1 for i in range(n) for j in range(i) if (i * j) % 3 == 1)
    squares = sum(map(lambda d: d * d, filter(lambda d: n % d == 0, range(1, n + 1))))
    return pairs, squares, math.prod(d for d in range(1, n) if d % 3), sum((i for i in range(n)), 7)


def decisions(n):
    prime = all(n % d for d in range(2, n))
    if any(n % d == 0 for d in range(2, n)):
        return prime, -1
    return prime, next((d for d in range(2, n) if n % d == 2), 0)


def extremes(n):
    first = max(range(n + 1), key=lambda d: n % (d + 1))
    return first, min((i * i - 7 * i for i in range(n)), default=99), max((abs(i - n // 2), i) for i in range(n + 1))


def lists(n):
    divisors = [d for d in range(1, n + 1) if n % d == 0]
    doubled = [2 * d for d in divisors if d % 2]
    return sum(divisors), len(doubled), divisors[len(divisors) // 2], max(divisors), len([k for k in range(n) if k % 4])


def known_lengths(n):
    first, second, third = [collatz(n + k) for k in range(3)]
    return first, second + third, jnp.array([collatz(k) for k in (n, n + 1)])


def grids(n):
    grid = [[i * j for j in range(i + 1)] for i in range(n)]
    return sum(sum(row) for row in grid), len(grid)


def loops(n):
    total = 0
    for k, x in enumerate(v * v for v in range(n)):
        if x > 50:
            break
        total += k * x
    else:
        total = -total
    for a, b in itertools.combinations(range(n), 2):
        total += a * b
    for x in itertools.chain(range(n), (100, 200)):
        total += x
    return total


def itertools_functions(n):
    a = sum(itertools.accumulate(range(n)))
    b = sum(y - x for x, y in itertools.pairwise(k * k for k in range(n)))
    c = sum(itertools.takewhile(lambda v: v < n, (k * k for k in itertools.count())))
    d = sum(x * y for x, y in itertools.product(range(n), range(3)))
    return a, b, c, d, sum(x - y for x, y in itertools.permutations(range(n), 2) if x > y)


def scopes(n):
    k = 100
    total = 0
    history = [total := total * n + k for k in (1, 2, 3)]
    shadowed = sum(sum(k for k in range(k)) for k in range(n))
    return history, total, k, shadowed, sum((lambda n: n + k)(k) for k in range(n))


PROGRAMS = [
    sums, decisions, extremes, lists, known_lengths, grids, loops, itertools_functions, scopes,
]  # fmt: skip


@pytest.mark.parametrize("fn", PROGRAMS)
def test_it_is_what_python_makes_of_it(fn: Callable[..., Any]) -> None:
    batched = pcbatch.batch(fn)
    found = batched(jnp.array(NUMBERS))
    for k, n in enumerate(NUMBERS):
        here = jax.tree.map(lambda leaf, k=k: np.asarray(leaf)[k], found)
        for have, want in zip(jax.tree.leaves(here), jax.tree.leaves(batched.plain(n)), strict=True):
            np.testing.assert_array_equal(have, want)


def last_digits(n):
    squares = {k * k % 10 for k in range(n)}
    halves = sum({k // 2 for k in range(n)}), len({k // 2 for k in range(n) if k}), list({k % 2: k for k in range(n)})
    largest = max({k: k % 3 for k in range(n)}), sum(d for d in {k % 4 for k in range(n)})
    return sorted({k * k % 10 for k in range(n)}), sum(squares), halves, largest, [d for d in {k % 2 for k in range(n)}]


@pytest.mark.full_only
def test_a_set_holds_equal_elements_only_once() -> None:
    found = pcbatch.batch(last_digits)(jnp.array(NUMBERS))
    ragged = [leaf.tolist() for leaf in jax.tree.leaves(found, is_leaf=lambda x: hasattr(x, "tolist"))]
    for lane, n in enumerate(NUMBERS):
        digits, total, (halves, size, keys), (largest, rest), order = last_digits(n)
        assert [column[lane] for column in ragged] == [digits, total, halves, size, keys, largest, rest, order]


def over_pairs(n):
    pairs = {(k % 3, k) for k in range(n)}
    return sum(b for a, b in pairs if a), max(7 * a + b for a, b in pairs)


def test_a_sum_over_a_set_of_tuples_needs_no_order() -> None:
    total, most = pcbatch.batch(over_pairs)(jnp.array([3, 5]))
    assert list(zip(total.tolist(), most.tolist(), strict=True)) == [over_pairs(3), over_pairs(5)]


def greatest(n):
    return max(d for d in range(2, n) if n % d == 0)


def first(n):
    return next(d for d in range(2, n) if n % d == 0)


@pytest.mark.parametrize(("fn", "exception"), [(greatest, "ValueError"), (first, "StopIteration")])
def test_an_empty_iterable_fails_the_lane(fn: Callable[..., Any], exception: str) -> None:
    with pytest.raises(BatchRuntimeError, match=f"1 of 2 lanes raised `{exception}`"):
        pcbatch.batch(fn)(jnp.array([8, 7]))


def handed_on(values):
    return values


def test_a_generator_for_another_function_is_refused() -> None:
    @pcbatch.batch
    def fn(n):
        return sum(handed_on(collatz(k) for k in (n, n + 1)))

    with pytest.raises(CompileError, match="PCB206"):
        fn(jnp.array(NUMBERS))


def test_what_can_be_traced_stays_one_primitive() -> None:
    def fn(x):
        return sum(x * k for k in range(3)) + max([x, 2 * x])

    def written(x):
        return 0 + x * 0 + x * 1 + x * 2 + jnp.maximum(x, 2 * x)

    xs = jnp.array([1.0, -2.0])
    assert len(pcbatch.batch(fn).lower(xs).stages.cfg.functions[0].blocks) == 1
    np.testing.assert_allclose(pcbatch.batch(fn)(xs), jax.vmap(written)(xs))


class Ladder:
    def __init__(self, first):
        self.items = [first]

    def last(self):
        return self.items[-1]


def extended_by_its_end(n):
    xs = [1]
    xs.extend(xs[-1] + k for k in range(n))
    return xs


def added_to_itself(n):
    xs = [1, 1]
    xs += (xs[-1] + xs[-2] for _ in range(n))
    return xs


def extended_by_a_method(n):
    ladder = Ladder(n)
    ladder.items.extend(ladder.last() * 2 for _ in range(n))
    return ladder.items


def extended_to_the_left(n):
    d = collections.deque([1])
    d.extendleft(d[0] + k for k in range(n) if k != 2)
    return list(d)


def extended_in_a_list(n):
    rows = [[1], [2]]
    rows[n % 2].extend(map(lambda j: len(rows[n % 2]) + j, range(n)))
    return rows[0] + rows[1]


def extended_until_it_raises(n):
    xs = [1]
    try:
        xs.extend(6 // (len(xs) - k) for k in range(3, n))
    except ZeroDivisionError:
        xs.append(-1)
    return xs


def extended_by_what_it_was(n):
    xs = [5, 6]
    xs.extend(x + 1 for x in xs[:n])
    xs.extend([len(xs) + k for k in range(n)])
    return xs


def keys_of_streams(n):
    seen = dict.fromkeys(k * k % 5 for k in range(n))
    counts = dict.fromkeys(map(abs, range(-2, n)), 1)
    return [*seen, *counts, sum(counts.values())]


@pytest.mark.parametrize(
    "function",
    [
        keys_of_streams,
        extended_by_its_end,
        added_to_itself,
        extended_by_a_method,
        extended_to_the_left,
        extended_in_a_list,
        extended_until_it_raises,
        extended_by_what_it_was,
    ],
)
def test_lists_that_grow_by_what_reads_them(function):
    found = pcbatch.batch(function)(np.array([0, 1, 2, 7]))
    assert [found[lane].tolist() for lane in range(4)] == [function(n) for n in (0, 1, 2, 7)]


def test_a_set_that_grows_by_what_reads_it_is_refused():
    def function(n):
        found = {1}
        found.update(len(found) + 5 for _ in range(n))
        return len(found)

    with pytest.raises(CompileError, match="reads what the call changes"):
        pcbatch.batch(function)(np.arange(3))
