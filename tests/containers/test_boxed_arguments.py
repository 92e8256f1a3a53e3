"""Arguments of the batch whose lists and dicts have several names, of which one changes them."""

from __future__ import annotations

import copy
from collections.abc import Callable
from typing import Any

import jax.numpy as jnp
import pytest

import pcbatch
from tests.strangers.rows import alike, as_plain, lane_of


def two_rows(grid, n):
    row = grid[n % 2]
    least = min(grid, key=sum)
    row.append(5)
    least.append(1)
    return grid


def whole_or_another(xs, n):
    ys = xs if n > 1 else [n]
    ys.append(3)
    return len(xs), len(ys), ys


def plane_and_row(cube, n):
    plane = min(cube, key=len)
    row = max(plane, key=len)
    row.append(n)
    plane.append([7])
    return cube


def value_of_a_dict(table, n):
    longest = max(table.values(), key=len)
    longest.append(n)
    return table


def one_row_twice(grid, n):
    grid[0] = grid[1]
    grid[0].append(n)
    return grid


GRIDS = [[[1, 2], [3]], [[4], [5, 6, 7]], [[1], [1]]]
CUBES = [[[[1], [2, 3]], [[4]]], [[[5]], [[6], [7, 8]]], [[[1]]]]
TABLES = [{1: [1, 2], 2: [3]}, {5: [1]}, {1: [2], 3: [4, 5]}]
PROGRAMS = (
    (two_rows, GRIDS), (whole_or_another, [[1, 2], [3], [4]]), (plane_and_row, CUBES), (value_of_a_dict, TABLES),
    (one_row_twice, GRIDS),
)  # fmt: skip


@pytest.mark.parametrize(("program", "values"), PROGRAMS, ids=[program.__name__ for program, _ in PROGRAMS])
def test_all_names_show_a_change(program: Callable[..., Any], values: list[Any]) -> None:
    results = pcbatch.batch(program)(pcbatch.ragged(values), jnp.array([1, 2, 3]))
    for k, value in enumerate(values):
        assert alike(as_plain(lane_of(results, k)), as_plain(program(copy.deepcopy(value), k + 1)), 0.0)


def calls_itself(rows, n):
    least = min(rows, key=sum)
    least.append(n)
    return calls_itself(rows, n - 1) if n > 0 else rows


def test_an_entry_that_calls_itself_is_refused() -> None:
    with pytest.raises(pcbatch.CompileError, match="PCB330"):
        pcbatch.batch(calls_itself)(pcbatch.ragged(GRIDS), jnp.array([1, 2, 3]))
