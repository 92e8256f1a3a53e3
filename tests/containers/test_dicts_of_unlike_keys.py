"""Dicts by name of which some lack keys of others: tables of a lane, where it chooses among them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import pcbatch
from tests.strangers.rows import alike, as_plain, lane_of

LANES = [1, 2, 3]
ROOMS = {
    "hall": {"north": "kitchen", "east": "study"},
    "kitchen": {"south": "hall"},
    "study": {"west": "hall", "north": "kitchen", "up": "hall"},
}
COSTS = {"a": {"b": 1, "c": 4}, "b": {"c": 2}, "c": {}}


def ways(n):
    room = "hall"
    for way in ["north", "south", "east", "up", "west"][: n + 2]:
        if way in ROOMS[room]:
            room = ROOMS[room][way]
    return room


def things(n):
    items = {"hall": {"coin": 2, "lamp": 1}, "kitchen": {"sword": 1}, "study": {}}
    room = ["hall", "kitchen", "study"][n - 1]
    if items[room].get("coin", 0):
        items[room]["coin"] -= 1
    items[room]["key"] = n
    return items["hall"]["coin"], {k: len(v) for k, v in items.items()}, sorted(items[room])


def rows_of_a_list(n):
    rows = [{"a": 1, "b": n}, {"a": 2}, {"c": 5}]
    row = rows[n % 3]
    return row.get("a", -1), "b" in row, len(row), sorted(row)


def shortest_ways(n):
    dist, todo = {"a": 0}, ["a"]
    while todo:
        x = todo.pop()
        for y, w in COSTS[x].items():
            if y not in dist or dist[x] + w < dist[y]:
                dist[y] = dist[x] + w
                todo.append(y)
    return dist["abc"[n - 1]], dist


def bases(n):
    base = [2, 8, 16][n - 1]
    text = "0b1" if n == 1 else "0o7" if n == 2 else "0XfF"
    return int(text, base), int("110", n + 1), int(str(n) + "1", 3 + n)


PROGRAMS = (ways, things, rows_of_a_list, shortest_ways, bases)


@pytest.mark.parametrize("program", PROGRAMS, ids=lambda program: program.__name__)
def test_lanes_choose_among_dicts(program: Callable[[int], Any]) -> None:
    found = pcbatch.batch(program)(np.array(LANES))
    for k, n in enumerate(LANES):
        assert alike(as_plain(lane_of(found, k)), as_plain(program(n)), 0.0), (program.__name__, n)


def test_a_text_that_is_no_integer_in_a_base_of_the_lane_ends_it() -> None:
    run = pcbatch.batch(lambda n: int("12", n)).run(np.array([2, 3]))
    assert [int(status) == pcbatch.Status.OK for status in run.status] == [False, True]
