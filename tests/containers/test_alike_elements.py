"""Comprehensions whose elements are all made alike: one primitive, with the meaning of the loop."""

from __future__ import annotations

import math
from typing import Any

import jax
import numpy as np
import pytest

import pcbatch
from pcbatch.runtime.vm.layout import never_awaited

N = np.array([0, 3, 1, 5, -2], np.int32)
M = np.array([4, 2, 0, 3, 1], np.int32)


def table(n, m):
    rows = [[0] * m for _ in range(n)]
    for i in range(n):
        for j in range(m):
            rows[i][j] = i * 10 + j
    total = 0
    for i in range(n):
        for j in range(m):
            total += rows[i][j] * (j + 1)
    return total, len(rows)


def rows_of_constants(n, m):
    rows = [[1, -2] for _ in range(n + 1)]
    rows[n][0] = m
    return rows[0][0] + rows[0][1], rows[n][0], len(rows)


def empty_rows(n, m):
    edges = [[] for _ in range(n)]
    for i in range(n):
        edges[i].append(m)
        edges[0].append(i)
    return sum(len(row) for row in edges), len(edges)


def comprehension_in_comprehension(n, m):
    rows = [[math.inf for _ in range(m)] for _ in range(1, n)]
    if n > 2 and m > 0:
        rows[1][m - 1] = 2.5
        rows[0][0] = 1.5
    least = 100.0
    for row in rows:
        for x in row:
            least = min(least, x)
    return least, len(rows)


def plain_numbers(n, m):
    xs = [-1 for _ in range(n * 2 + 1)]
    xs[0] = m
    return sum(xs), len(xs)


def known_number_of_rows(n, m):
    rows = [[0] * m for _ in range(3)]
    for i in range(3):
        for j in range(m):
            rows[i][j] += j
    return sum(rows[0]) + sum(rows[2]), len(rows[1])


def rows_are_apart(n, m):
    rows = [[0] * (m + 1) for k in range(n + 2)]
    rows[0][m] = 7
    rows[1].append(5)
    return rows[1][m], len(rows[0]), len(rows[1])


PROGRAMS = [
    table,
    rows_of_constants,
    empty_rows,
    comprehension_in_comprehension,
    plain_numbers,
    known_number_of_rows,
    rows_are_apart,
]


def lanes(result: Any) -> list[Any]:
    return [jax.tree.map(lambda leaf, k=k: leaf[k].item(), result) for k in range(len(N))]


@pytest.mark.parametrize("fn", PROGRAMS, ids=lambda fn: fn.__name__)
def test_lanes_equal_the_plain_function(fn: Any) -> None:
    n, m = (np.maximum(N, 0), M) if fn in (rows_of_constants, plain_numbers, rows_are_apart) else (N, M)
    f = pcbatch.batch(fn)
    assert lanes(f(n, m)) == [fn(int(a), int(b)) for a, b in zip(n, m, strict=True)]


def made_alike(n, m):
    rows = [[0] * m for _ in range(n)]
    return len(rows)


def made_one_by_one(n, m):
    rows = [[k] * m for k in range(n)]
    return len(rows)


def test_only_elements_that_depend_on_the_loop_are_made_in_a_loop() -> None:
    def awaited(fn: Any) -> int:
        program = pcbatch.batch(fn).lower(N, M).stages.opt
        return len(program.blocks) - len(never_awaited(program))

    assert awaited(made_alike) < awaited(made_one_by_one)


def shared_row(n, m):
    row = [0] * (m + 1)
    rows = [row for _ in range(n + 2)]
    rows[0][0] = 1
    return rows[1][0]


def shared_row_in_rows(n, m):
    row = [0] * (m + 1)
    rows = [[row] * 2 for _ in range(n + 2)]
    rows[0][0][0] = 1
    return rows[1][1][0]


def row_in_a_tuple_twice(n, m):
    pair = ([n], m)
    pairs = [pair, pair]
    pairs[0][0].append(m)
    return len(pairs[1][0])


def test_a_row_that_all_share_is_no_new_row_for_each() -> None:
    with pytest.raises(pcbatch.CompileError, match="PCB330|PCB304"):
        pcbatch.batch(shared_row_in_rows)(np.maximum(N, 0), M)


@pytest.mark.parametrize("fn", [shared_row, row_in_a_tuple_twice])
def test_a_row_that_all_share_is_one_object(fn: Any) -> None:
    found = pcbatch.batch(fn).run(np.maximum(N, 0), M)
    for k, (a, b) in enumerate(zip(np.maximum(N, 0), M, strict=True)):
        try:
            assert int(found.value[k]) == fn(int(a), int(b))
        except IndexError:
            assert int(found.status[k]) == int(pcbatch.Status.ERROR)


def test_room_is_made_once_for_all_rows() -> None:
    f = pcbatch.batch(table)
    assert f(np.array([2], np.int32), np.array([100], np.int32))[1][0] == 2
    assert sorted(program.room.elements for program in f._programs.cache.values()) == [32, 128]


def rows_of_other_lengths(n, m):
    rows = [[i + j for j in range(m - i)] for i in range(n)]
    if n > 0:
        rows[0].append(5)
    if n > 1:
        rows[1].append(7)
    return sum(len(row) for row in rows)


def test_rows_that_a_comprehension_makes_one_by_one_are_apart() -> None:
    found = pcbatch.batch(rows_of_other_lengths)(N, M)
    assert found.tolist() == [rows_of_other_lengths(int(a), int(b)) for a, b in zip(N, M, strict=True)]


def list_with_a_row_twice(n, m):
    row = [m]
    rows = [[0], [1]]
    rows = rows + [row]
    rows = rows + [row]
    rows[n][0] = 9
    return rows[3][0]


def test_a_row_that_is_added_twice_is_one_object() -> None:
    found = pcbatch.batch(list_with_a_row_twice)(np.maximum(N, 0) % 4, M)
    assert found.tolist() == [
        list_with_a_row_twice(int(a), int(b)) for a, b in zip(np.maximum(N, 0) % 4, M, strict=True)
    ]


def triangle(n, m):
    rows = [[1] * (k + m) for k in range(n)]
    return sum(len(row) for row in rows)


def test_rows_of_lengths_that_grow() -> None:
    found = pcbatch.batch(triangle)(N, M)
    assert found.tolist() == [triangle(int(a), int(b)) for a, b in zip(N, M, strict=True)]
