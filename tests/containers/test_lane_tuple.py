"""Tuples of the lane, and `zip(*rows)` of rows of the lane."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import pcbatch

pytestmark = pytest.mark.share(2)

ROWS = [[[1, 2, 3], [4, 5, 6]], [[1, 2], [3, 4], [5, 6]], [[7]]]
PAIRS = [[(1, 2), (3, 4), (5, 6)], [], [(9, 8)]]


def columns(rows):
    total = 0
    for column in zip(*rows, strict=True):
        total += column[0] * column[-1] + len(column)
    return (
        total,
        [sum(c) for c in zip(*rows)],
        list(map(list, zip(*rows[::-1]))),
        list(zip(*rows)),
        [[sum(a * b for a, b in zip(row, c)) for c in zip(*rows)] for row in rows],
        all(len(set(c)) == len(c) for c in zip(*rows)),
        [c for k, c in enumerate(zip(*rows)) if k != 1],
    )


def tuples(rows):
    t, first = tuple(x for x in rows[0] if x > 1), tuple(rows[0])
    return (
        (t == (2, 3), t != (2, 3), t < (2, 4), 2 in t, len(t), isinstance(t, tuple)),
        (t * 2, first + (1,), (0,) + first, first[1:], sorted(first, reverse=True), first == rows[0]),
        [tuple(row) for row in rows],
    )


def of_pairs(pairs):
    total = 0
    for part in zip(*pairs):
        total = 10 * total + max(part)
    return total, [list(part) for part in zip(*pairs)]


def changed(rows):
    rows[:] = [list(row) for row in zip(*rows)]
    return rows


@pytest.mark.parametrize(("fn", "lists"), [(columns, ROWS), (tuples, ROWS), (of_pairs, PAIRS), (changed, ROWS)])
def test_as_plain(fn: Callable[..., Any], lists: list[Any]) -> None:
    found = pcbatch.batch(fn)(pcbatch.ragged(lists))
    is_form = lambda part: hasattr(part, "tolist")
    for lane, example in enumerate(lists):
        want = fn([list(row) if isinstance(row, list) else row for row in example])
        assert jax.tree.map(lambda part, lane=lane: part.tolist()[lane], found, is_leaf=is_form) == want


def test_rows_of_an_array() -> None:
    grid = np.arange(6).reshape(1, 2, 3)
    found = pcbatch.batch(lambda g: [sum(c) for c in zip(*g)])(jnp.array(grid))
    assert [int(x[0]) for x in found] == [3, 5, 7]


def test_rows_of_different_lengths_end_a_lane_if_strict() -> None:
    fn = pcbatch.batch(lambda rows: [sum(c) for c in zip(*rows, strict=True)])
    result = fn.run(pcbatch.ragged([[[1, 2], [3]], [[1], [2]]]))
    assert result.value.tolist() == [None, [3]]
    with_none = pcbatch.batch(lambda n: n + sum([1 for _ in zip(*[[], [1] * n], strict=True)]))
    assert with_none(jnp.array([0])).tolist() == [0]
    with pytest.raises(pcbatch.BatchRuntimeError, match="differ in length"):
        with_none(jnp.array([0, 2]))


def test_a_tuple_cannot_be_changed() -> None:
    def fn(xs):
        t = tuple(xs)
        t.append(1)
        return t

    with pytest.raises(pcbatch.CompileError, match="'tuple' object has no attribute 'append'"):
        pcbatch.batch(fn).lower(pcbatch.ragged([[1], [2, 3]]))


def test_a_result_is_an_argument() -> None:
    found = pcbatch.batch(lambda xs: tuple(xs))(pcbatch.ragged([[1], [2, 3]]))
    assert found.tolist() == [(1,), (2, 3)]
    assert pcbatch.batch(lambda t: isinstance(t, tuple))(found).tolist() == [True, True]


def test_a_known_tuple_times_a_number_of_the_lane() -> None:
    def fn(n):
        zeros = (0,) * n
        steps = n * (1, 2) + (5,)
        seen = {(0, 0): 1}
        return zeros, steps[-1] + len(steps), seen.get(zeros, 7)

    ns = np.arange(4)
    zeros, number, seen = pcbatch.batch(fn)(ns)
    found = list(zip(zeros.tolist(), number.tolist(), seen.tolist(), strict=True))
    assert found == [fn(int(n)) for n in ns]
