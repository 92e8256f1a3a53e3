"""Programs in which two names may mean one object: a lane does what Python does, or the program is refused."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import jax.numpy as jnp
import pytest

import pcbatch


def two_names(n):
    a = [1, 2, 3]
    b = a
    b[0] = n
    return a[0]


def twice_in_a_list(n):
    a = [1, 2, 3]
    b = [a, a]
    b[0][0] = n
    return b[1][0]


def one_row_many_times(n):
    g = [[0] * 2] * 2
    g[0][0] = n
    return g[1][0]


def a_row_changes_its_grid(n):
    g = [[0] * 2 for _ in range(n)]
    row = g[0]
    row[1] = 5
    return g[0][1]


def appended_and_changed_after(n):
    result, part = [], []
    for i in range(n):
        part.append(i)
        result.append(part)
    return sum(len(r) for r in result)


def one_of_two(n):
    a, b = [1], [2]
    c = a if n > 2 else b
    c.append(n)
    return len(a) * 10 + len(b)


def shallow_copy(n):
    a = [[1], [2]]
    b = a[:]
    b[0].append(n)
    return len(a[0])


def in_a_dict(n):
    m = {1: [n]}
    v = m[1]
    v.append(2)
    return len(m[1])


def sorted_is_a_copy(n):
    a = [3, 1, 2]
    b = sorted(a)
    a.sort(reverse=True)
    return a[0] * 10 + b[0] + n


def numbers_are_values(n):
    x = 5
    y = x
    y += n
    return x


def list_of_is_a_copy(n):
    a = [1, 2]
    a += [n]
    b = a + [4]
    b[0] = 9
    return a[0] * 100 + len(a) * 10 + len(b)


def targets_from_left_to_right(n):
    a = [1, 2, 3]
    a[0], a[a[0]] = a[1], n
    return a[0] * 100 + a[1] * 10 + a[2]


def stores_of_a_loop_are_seen_by_it(n):
    a = [1, 2, 3]
    for v in a:
        a[2] = n
        n += v
    return n * 10 + a[2]


def evaluated_from_left_to_right(n):
    a = [1, 2, 3]
    return a.pop(0) + a.pop() * a[0] + n


REFUSED = [
    twice_in_a_list,
    one_row_many_times,
    appended_and_changed_after,
    one_of_two,
    shallow_copy,
]
RIGHT = [
    two_names,
    a_row_changes_its_grid,
    in_a_dict,
    sorted_is_a_copy,
    numbers_are_values,
    list_of_is_a_copy,
    targets_from_left_to_right,
    stores_of_a_loop_are_seen_by_it,
    evaluated_from_left_to_right,
]


def _ids(fns: Sequence[Callable[..., Any]]) -> list[str]:
    return [fn.__name__ for fn in fns]


@pytest.mark.parametrize("fn", REFUSED, ids=_ids(REFUSED))
def test_a_change_that_another_name_would_show_is_refused(fn: Callable[..., Any]) -> None:
    with pytest.raises(pcbatch.CompileError, match="PCB330"):
        pcbatch.batch(fn).lower(jnp.array([1, 3]))


@pytest.mark.parametrize("fn", RIGHT, ids=_ids(RIGHT))
def test_a_lane_does_what_python_does(fn: Callable[..., Any]) -> None:
    assert pcbatch.batch(fn)(jnp.array([1, 3])).tolist() == [fn(1), fn(3)]


def test_whether_two_names_mean_one_collection_is_refused() -> None:
    def one_object(n):
        a = [n]
        b = a
        return a is b

    with pytest.raises(pcbatch.CompileError, match="`is` asks whether two names mean one object"):
        pcbatch.batch(one_object).lower(jnp.array([1, 3]))
