"""Values that may be None, as users read them in results."""

from __future__ import annotations

import bisect
import math

import jax
import jax.numpy as jnp
import pytest

import pcbatch
from pcbatch.data.optional import Optional
from tests.strangers.rows import Row


def divisors_or_none(n):
    if n % 2:
        return None
    found = []
    for d in range(1, n + 1):
        if n % d == 0:
            found.append(d)
    return found


def test_numbers() -> None:
    value = Optional(jnp.array([3, 0]), jnp.array([True, False]))
    assert value.tolist() == [3, None]
    assert value[0] == 3
    assert value[1] is None


def test_lists_of_different_lengths() -> None:
    value = Optional(pcbatch.ragged([[1, 2], [], [3]]), jnp.array([True, False, True]))
    assert value.tolist() == [[1, 2], None, [3]]
    assert value[0].tolist() == [1, 2]
    assert value[1] is None


@pytest.mark.promotion("standard")
def test_a_result_that_is_a_list_or_none() -> None:
    found = pcbatch.batch(divisors_or_none)(jnp.array([6, 7, 4]))
    assert found.tolist() == [divisors_or_none(n) for n in (6, 7, 4)]


def numbers_of_a_variable_that_was_none(n):
    v = None
    xs = [n, n + 1, n + 2]
    for i in range(3):
        if n > 0:
            v = i
    return (
        xs[v],
        [7, 8, 9][v],
        int(v),
        float(v),
        min(v, 1),
        max(v, 1, n),
        len(range(v)),
        math.sqrt(v),
        bool(v),
        pow(n, v),
    )


@pytest.mark.promotion("standard")
def test_functions_of_numbers_take_it_and_raise_where_it_is_none() -> None:
    result = pcbatch.batch(numbers_of_a_variable_that_was_none).run(jnp.array([2, 0, 5]))
    assert [bool(status) for status in result.status] == [False, True, False]
    for lane, n in ((0, 2), (2, 5)):
        found = [part[lane].item() for part in result.value]
        assert found == pytest.approx(numbers_of_a_variable_that_was_none(n))


def hashed(n):
    v = None
    if n > 0:
        v = n
    return hash(v) % 7


def test_its_hash_is_refused() -> None:
    with pytest.raises(pcbatch.CompileError, match="unhashable"):
        pcbatch.batch(hashed).lower(jnp.array([1, 2]))


def places(xs, x):
    known = [1, 3, 3, 8]
    a = bisect.bisect_left(xs, x), bisect.bisect_right(xs, x), bisect.bisect(xs, x, 1, 3)
    return a, bisect.bisect_left(known, x), bisect.bisect_left(xs, x * x, key=lambda y: y * y)


@pytest.mark.promotion("standard")
def test_bisection() -> None:
    lists, numbers = [[1, 2, 2, 5], [3, 3, 3, 3, 4], [0, 7, 9]], [2, 3, 10]
    found = pcbatch.batch(places)(pcbatch.ragged(lists), jnp.array(numbers))
    for lane, (xs, x) in enumerate(zip(lists, numbers, strict=True)):
        assert jax.tree.map(lambda leaf: leaf[lane].item(), found) == places(xs, x)


def gone_over(n):
    pair = None
    grown = None
    for i in range(3):
        if n > 0:
            pair = (n - 1, n + 1)
            grown = list(range(n))
    total = 0
    for k, x in enumerate(grown):
        total += (k + 1) * x
    a, b = pair
    doubled = [2 * x for x in grown]
    return total, a, b, sum(pair), sum(grown), pair[-1], grown[n - 1], len(grown), sorted(pair), doubled, 1 in grown


@pytest.mark.promotion("standard")
def test_tuples_and_lists_are_gone_over() -> None:
    """Python's old protocol of iteration must not take the lanes of a result for elements."""
    row = Row("optional", gone_over, ((2,), (0,), (4,)), True, 1e-5, "")
    assert not row.differences()
