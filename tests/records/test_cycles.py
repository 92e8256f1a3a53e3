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


class Ring:
    def __init__(self, head):
        self.head = head


def inside_an_object(n):
    ring = Ring(Cell(n))
    ring.head.next = ring.head
    return 1 if ring.head.next.next is None else 2


def in_a_new_object_inside_another(n):
    ring = Ring(Cell(n))
    ring.head.next = Cell(1, ring.head)
    return 1 if ring.head.next.next.next is None else 2


def by_a_name_of_the_inside(n):
    ring = Ring(Cell(n))
    other = Cell(1, ring.head)
    ring.head.next = other
    return 1 if ring.head.next.next.next is None else 2


def inside_a_dict(n):
    rings = {"head": Cell(n)}
    rings["head"].next = rings["head"]
    return 1 if rings["head"].next.next is None else 2


def inside_a_list(n):
    cells = [Cell(n)]
    other = Cell(1, cells[0])
    cells[0].next = other
    return 1 if cells[0].next.next.next is None else 2


def dict_in_a_dict(n):
    ring = {"head": {"value": n, "next": None}}
    ring["head"]["next"] = ring["head"]
    return 1 if ring["head"]["next"]["next"] is None else 2


def list_of_what_holds_it(n):
    table = {"all": [], "value": n}
    table["all"].append({"value": 2, "all": table["all"]})
    return len(table["all"][0]["all"])


PROGRAMS = (
    inside_an_object,
    in_a_new_object_inside_another,
    by_a_name_of_the_inside,
    inside_a_dict,
    inside_a_list,
    dict_in_a_dict,
    list_of_what_holds_it,
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


def dict_by_a_name_in_a_dict(n):
    ring = {"head": {"value": n, "next": None}}
    other = {"value": n, "next": ring["head"]}
    ring["head"]["next"] = other
    return 1 if ring["head"]["next"]["next"]["next"] is None else 2


REFUSED = (
    list_in_itself,
    list_in_its_element,
    list_in_a_new_list,
    dict_in_itself,
    dict_by_a_name_in_a_dict,
)


def lists_side_by_side(n):
    table = {"row": [n], "rows": []}
    table["rows"].append(table["row"])
    table["row"] = [n + 1]
    return len(table["rows"][0]) + table["row"][0]


def test_a_list_in_another_list_of_its_dict_is_none_in_itself() -> None:
    assert pcbatch.batch(lists_side_by_side)(np.array([1, 2])).tolist() == [3, 4]


@pytest.mark.parametrize("program", REFUSED, ids=lambda program: program.__name__)
def test_a_list_or_dict_that_holds_itself_is_refused(program: Callable[[int], int]) -> None:
    with pytest.raises(pcbatch.CompileError, match="is stored inside of itself"):
        pcbatch.batch(program)(np.array([1, 2]))
