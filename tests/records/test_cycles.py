"""Objects that hold themselves: they become records of the lane, and lists and dicts that do are refused."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import pcbatch


class Cell:
    def __init__(self, value, next=None):
        self.value = value
        self.next = next


def put(cell, other):
    if cell is not None:
        cell.next = other


def own_successor(n):
    cell = Cell(n)
    cell.next = cell
    return 1 if cell.next.next is None else 2


def by_another_name(n):
    cell = Cell(n)
    other = cell
    cell.next = other
    return 1 if cell.next.next is None else 2


def ring_of_two(n):
    cell = Cell(n)
    cell.next = Cell(1, cell)
    return 1 if cell.next.next.next is None else 2


def in_a_helper(n):
    cell = Cell(n)
    put(cell, Cell(1, cell))
    put(cell.next, cell)
    return cell.next.next.next.value


def compared_in_a_helper(n):
    cell = Cell(n)
    return same_as_next(cell) + same_as_next(Cell(3))


def same_as_next(cell):
    if cell is not None:
        cell.next = cell
    return int(cell.next is cell)


def in_a_list(n):
    cell = Cell(n, [])
    cell.next.append(cell)
    return len(cell.next[0].next)


def changed_behind_it(n):
    cell = Cell(n + 1, Cell(0))
    if cell is not None:
        cell.next = cell
    cell.value = n and n * 0 + 4
    return cell.next.next.value


PROGRAMS = (
    own_successor,
    by_another_name,
    ring_of_two,
    in_a_helper,
    compared_in_a_helper,
    in_a_list,
    changed_behind_it,
)


@pytest.mark.parametrize("program", PROGRAMS, ids=lambda program: program.__name__)
def test_an_object_that_holds_itself_is_one_object(program: Callable[[int], int]) -> None:
    values = np.array([1, 2, 3])
    assert pcbatch.batch(program)(values).tolist() == [program(int(n)) for n in values]


def list_in_itself(n):
    row = [n]
    row.append(row)
    return len(row[1])


def list_in_its_element(n):
    rows = [[n], [2]]
    rows[0].append(rows)
    return len(rows[0][1])


def list_in_a_new_list(n):
    row = [n]
    row.append([row])
    return len(row[1][0])


def dict_in_itself(n):
    table: dict[int, Any] = {1: n}
    table[0] = table
    return len(table[0])


REFUSED = (list_in_itself, list_in_its_element, list_in_a_new_list, dict_in_itself)


@pytest.mark.parametrize("program", REFUSED, ids=lambda program: program.__name__)
def test_a_list_or_dict_that_holds_itself_is_refused(program: Callable[[int], int]) -> None:
    with pytest.raises(pcbatch.CompileError, match="is stored inside of itself"):
        pcbatch.batch(program)(np.array([1, 2]))
