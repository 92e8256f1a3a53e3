"""Lanes keep the results of functions under a cache of Python's that call themselves; without it none of these ends."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import pcbatch

pytestmark = pytest.mark.promotion("standard")

MODULUS = 1009


def fibonacci(n):
    @cache
    def fib(k):
        return k if k < 2 else (fib(k - 1) + fib(k - 2)) % MODULUS

    return fib(n)


@cache
def ways(n, k):
    if n == 0:
        return 1
    if n < 0 or k == 0:
        return 0
    return (ways(n - k, k) + ways(n, k - 1)) % MODULUS


def partitions(n):
    """A function of the module, called twice from outside."""
    return ways(n, n) + ways(n - 1, 5)


@cache
def evens(n):
    return 0 if n <= 0 else 1 + (odds(n - 1) + odds(n - 2)) % MODULUS


@cache
def odds(n):
    return 1 if n <= 0 else (evens(n - 1) + through(n - 3)) % MODULUS


def through(n):
    return evens(n) + 1


def of_each_other(n):
    """Two caches, and a function between them that has none."""
    return evens(n)


def parameters_assigned(n):
    @cache
    def go(m):
        total = 1
        while m > 0:
            m -= 1
            total += go(m) % 7
        return total

    return go(n)


def of_texts(n):
    text = "ab" * n

    @cache
    def splits(s):
        if not s:
            return 1
        return sum(splits(s[k:]) for k in range(1, 4) if s[:k] in ("a", "ab", "b", "bab")) % MODULUS

    return splits(text)


def tuples(n):
    @cache
    def go(m):
        if m == 0:
            return 0, 1
        a, b = go(m - 1)
        c, d = go(m // 2)
        return (a + d) % 97, (b + c) % 97

    return go(n)


def results_that_may_be_none(n):
    @cache
    def coins(m):
        if m < 0:
            return None
        if m == 0:
            return 0
        found = [c for c in (coins(m - 3), coins(m - 5), coins(m - 7)) if c is not None]
        return min(found) + 1 if found else None

    fewest = coins(n)
    return -1 if fewest is None else fewest


def defaults_and_keywords(n):
    @cache
    def go(i, j=0, *, k=1):
        return j + k if i <= 0 else (go(i - 1, j, k=k) + go(i - 2, k=k)) % MODULUS

    return go(n) + go(n, k=2)


def handed_on(n):
    @cache
    def go(i):
        return 1 if i <= 0 else (go(i - 1) + go(i - 2)) % MODULUS

    return sum(map(go, range(n)))


def defined_anew(n):
    """A cache that is made in each round knows nothing of the last one."""
    total = 0
    for t in range(2):

        @cache
        def go(i):
            return i + t if i < 2 else (go(i - 1) + go(i - 2)) % MODULUS

        total += go(n)
    return total


def raising(n):
    @cache
    def go(i):
        if i == 3:
            raise ValueError(i)
        return 1 if i <= 0 else go(i - 1) + go(i - 2)

    try:
        return go(n)
    except ValueError:
        return -1


@cache
def global_fibonacci(k):
    return k if k < 2 else (global_fibonacci(k - 1) + global_fibonacci(k - 2)) % MODULUS


def applied(function, xs):
    return sum(function(x) for x in xs)


def handed_to_a_helper(n):
    return applied(global_fibonacci, range(n)) + max([n, 2, 3], key=global_fibonacci) + global_fibonacci(n)


def returned_in_a_finally(n):
    """What the `try` returns is not the result."""

    @cache
    def go(i):
        if i < 2:
            return i
        try:
            return go(i - 1) + go(i - 2)
        finally:
            if i == 3:
                return 55

    return go(n % 10)


def made_anew_in_the_base_case(n):
    """The list that a simple case returns is kept as well."""

    @cache
    def go(i):
        if i <= 0:
            return [1]
        return [*go(i - 1), i]

    return len(go(n % 7)) * 100 + len(go(0))


def cleared(n):
    @cache
    def go(i):
        return i if i < 2 else (go(i - 1) + go(i - 2)) % MODULUS

    total = go(n)
    go.cache_clear()
    for k in range(3):
        total += go(n + k) + global_fibonacci(n + k)
        global_fibonacci.cache_clear()
    return total


PROGRAMS = [
    cleared,
    handed_to_a_helper,
    returned_in_a_finally,
    made_anew_in_the_base_case,
    fibonacci,
    partitions,
    of_each_other,
    parameters_assigned,
    tuples,
    results_that_may_be_none,
    defaults_and_keywords,
    handed_on,
    defined_anew,
    raising,
]


@pytest.mark.parametrize("fn", PROGRAMS, ids=lambda fn: fn.__name__)
def test_the_results_are_those_of_python(fn: Callable[[int], Any]) -> None:
    sizes = np.array([0, 4, 50])
    found = pcbatch.batch(fn, max_length=2048)(sizes)
    found = list(zip(*(part.tolist() for part in found), strict=True)) if type(found) is tuple else found.tolist()
    assert found == [fn(n) for n in sizes.tolist()]


def test_texts_are_keys_as_well() -> None:
    sizes = np.array([1, 3])
    assert pcbatch.batch(of_texts)(sizes).tolist() == [of_texts(n) for n in sizes.tolist()]


def test_each_call_is_made_once() -> None:
    counted = pcbatch.batch(fibonacci, max_length=128, stats=True)
    calls = [counted.run(np.array([n])).stats.visits("% MODULUS") for n in (20, 60)]
    assert calls == [19, 59]


def floats(x):
    @cache
    def go(y, n):
        return y if n == 0 else go(y * 0.5, n - 1) + go(y * 0.25, n - 1)

    return go(x, 4)


def arrays(n):
    """A result that no dict of a lane can hold beside the others: the memo is left out."""

    @cache
    def go(m):
        return jnp.zeros(2) if m <= 0 else go(m - 1) + jnp.arange(2.0)

    return go(n)


class Node:
    def __init__(self, left):
        self.left = left


def objects(n):
    """Objects that lanes make are no keys in a lane."""

    @cache
    def depth(node):
        return 0 if node is None else 1 + depth(node.left)

    node = None
    for _ in range(n):
        node = Node(node)
    return depth(node)


@pytest.mark.parametrize("fn", [arrays, objects], ids=lambda fn: fn.__name__)
def test_a_cached_function_without_keys_keeps_nothing(fn: Callable[[int], Any]) -> None:
    sizes = np.array([0, 3])
    assert np.array_equal(pcbatch.batch(fn)(sizes), np.stack([fn(n) for n in sizes.tolist()]))


def test_derivatives_go_through_it() -> None:
    xs = jnp.array([1.0, 2.0])
    batched = pcbatch.batch(floats)
    assert np.allclose(jax.grad(lambda x: batched(x).sum())(xs), jax.vmap(jax.grad(_plain))(xs))


def _plain(x):
    def go(y, n):
        return y if n == 0 else go(y * 0.5, n - 1) + go(y * 0.25, n - 1)

    return go(x, 4)


class Grid:
    def __init__(self, size: int) -> None:
        self.size = size

    @cache
    def paths(self, i, j):
        return 1 if self.size in (i, j) else self.paths(i + 1, j) + self.paths(i, j + 1)


SMALL, LARGE = Grid(3), Grid(5)


def on_two_grids(n):
    return SMALL.paths(n, 0) * 1000 + LARGE.paths(n, 0)


def test_a_cached_method_of_known_objects_keeps_nothing() -> None:
    sizes = np.array([0, 2])
    assert pcbatch.batch(on_two_grids)(sizes).tolist() == [on_two_grids(n) for n in sizes.tolist()]


def assigned_between_calls(n):
    limit = n

    @cache
    def go(i):
        return limit if i <= 1 else go(i - 1) + go(i - 2)

    first = go(4)
    limit += 100
    return first + go(4)


def changed_in_a_loop(n):
    xs, total = [n, 2, 3], 0

    @cache
    def go(i):
        return xs[i % 3] + (go(i - 1) if i > 0 else 0)

    for k in range(3):
        total += go(k)
        xs.append(k)
    return total


@pytest.mark.parametrize("fn", [assigned_between_calls, changed_in_a_loop], ids=lambda fn: fn.__name__)
def test_what_a_cache_does_not_see_is_refused(fn: Callable[[int], Any]) -> None:
    with pytest.raises(pcbatch.CompileError, match="which Python caches, has read it"):
        pcbatch.batch(fn)(np.array([3, 5]))
