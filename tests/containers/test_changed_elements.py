"""Elements that loops change: values of dicts, rows of lists in attributes and in records made in lanes."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import pcbatch
from tests.strangers.rows import alike, as_plain, lane_of

LANES = [2, 3, 4, 5]


def sorted_values(n):
    graph = {}
    for k in range(n):
        graph[k] = [k, 3, 1]
    for row in graph.values():
        row.sort()
    return graph


def extended_items(n):
    graph = {}
    for k in range(n):
        graph[k] = [k]
    for k, row in graph.items():
        if k % 2:
            continue
        row.append(k)
        row[0] = 7
    return graph


def numbered_items(n):
    graph = {k: [k, 3, 1] for k in range(n)}
    for i, (_, row) in enumerate(graph.items()):
        row.append(i)
    return graph


def inner_dicts(n):
    graph = {}
    for k in range(n):
        graph[k] = {k: 1}
    for k, inner in graph.items():
        inner[k + 1] = 5
    for inner in graph.values():
        inner[0] = 2
    return graph


def inner_sets(n):
    graph = {}
    for k in range(n):
        graph[k] = {k, k + 1}
    for k, inner in graph.items():
        inner.discard(k)
        inner.add(99)
    return graph


def part_of_dict(n):
    graph = {}
    for k in range(n):
        graph[k] = {k: 1}
    for k in graph:
        inner = graph[k]
        inner[0] = 5
    return graph


def lists_of_sets(n):
    rows = [{k} for k in range(n)]
    for row in rows:
        row.add(7)
    return rows


def default_dicts(n):
    graph = defaultdict(lambda: defaultdict(int))
    for k in range(n):
        graph[k % 3][k % 2] += 1
    for k, inner in graph.items():
        inner[5] = k
    return graph[0][5], graph[1][5], len(graph[0])


def other_rows_too(n):
    graph = {}
    for k in range(n):
        graph[k] = [k]
    for k, row in graph.items():
        graph[(k + 1) % n].append(k)
        row.append(7)
    return graph


def nested_loops(n):
    graph = {}
    for k in range(n):
        graph[k] = [k]
    for k, row in graph.items():
        for j, other in graph.items():
            if j == k:
                other.append(k)
        row.append(len(row))
    return graph


def kept_elements(n):
    graph = {}
    for k in range(n):
        graph[k] = [k]
    last = graph[n - 1]
    for k, row in graph.items():
        row.append(k)
    return graph, last


class Box:
    """Holds a dict and a list of lists."""

    def __init__(self, n):
        self.table = {k: [k, 1] for k in range(n)}
        self.rows = [[k, 0] for k in range(n)]

    def tidy(self):
        for row in self.table.values():
            row.sort()
        for k, row in self.table.items():
            row.append(k)
        for row in self.rows:
            row.reverse()
        for k, row in enumerate(self.rows):
            row.append(k)


def attributes(n):
    box = Box(n)
    box.tidy()
    return box.table, box.rows


class Node:
    """A record, of which lanes make several."""

    def __init__(self, k):
        self.k = k
        self.table = {k: [k, 0], k + 1: [3, k]}
        self.rows = [[k], [2]]

    def tidy(self):
        for row in self.table.values():
            row.sort()
        for row in self.rows:
            extend(row)
            row.append(9)


def extend(row):
    row.append(len(row))


def records(n):
    nodes = []
    for k in range(n):
        nodes.append(Node(k))
    for node in nodes:
        node.tidy()
    sums = []
    for node in nodes:
        sums.append(sum(node.rows[0]) + 100 * node.table[node.k][0] + len(node.rows[1]))
    return sums


def dicts_by_name(n):
    found = []
    for k in range(n):
        found.append({"id": k, "tags": 0})
    for row in found:
        row["tags"] += 3
    last = found[n - 1]
    last["id"] = 50
    return found[0]["tags"], found[n - 1]["id"]


def dicts_by_name_in_a_dict(n):
    table = {k: {"id": k, "tags": 0} for k in range(n)}
    for key, row in table.items():
        row["tags"] += key
    first = table[0]
    first["tags"] = 8
    return table[0]["tags"], table[n - 1]["tags"]


def parts_of_elements(n):
    rows = [({"b": k}, [k]) for k in range(n)]
    named, listed = rows[0]
    named["b"] = 50
    listed.append(7)
    return rows[0][0]["b"], rows[0][1]


PROGRAMS = (
    sorted_values, extended_items, numbered_items, inner_dicts, inner_sets, part_of_dict, lists_of_sets, default_dicts,
    other_rows_too, nested_loops, kept_elements, attributes, records, dicts_by_name,
    dicts_by_name_in_a_dict, parts_of_elements,
)  # fmt: skip


@pytest.mark.parametrize("program", PROGRAMS, ids=lambda program: program.__name__)
def test_a_loop_changes_the_elements_of_what_it_goes_over(program: Callable[..., Any]) -> None:
    result = pcbatch.batch(program)(np.array(LANES))
    for place, n in enumerate(LANES):
        assert alike(as_plain(lane_of(result, place)), as_plain(program(n)), 0)


def one_list_twice(n):
    row = [n]
    graph = {0: row, 1: row, n: [n]}
    for k, row in graph.items():
        row.append(k)
    return graph


def replaced_in_the_loop(n):
    graph = {}
    for k in range(n):
        graph[k] = [k]
    for k, row in graph.items():
        graph[k] = [100 + k]
        row.append(k)
    return graph


class Pair(Node):
    """A record whose rows another variable moves."""

    def moved(self, other):
        for row in self.rows:
            if len(other.rows) < 5:
                other.rows.insert(0, [7])
            row.append(9)

    def replaced(self, other):
        for row in self.rows:
            other.rows = [[1], [2]]
            row.append(9)

    def popped(self):
        row = self.rows[0]
        self.rows.pop(0)
        row.append(2)
        self.rows.append(row)


def _pairs(n):
    pairs = []
    for k in range(n):
        pairs.append(Pair(k))
    return pairs


def moved_by_another_name(n):
    pairs = _pairs(n)
    pairs[0].moved(pairs[n % 2])
    return len(pairs[0].rows[0])


def replaced_by_another_name(n):
    pairs = _pairs(n)
    pairs[0].replaced(pairs[n % 2])
    return len(pairs[0].rows[0])


def popped_in_between(n):
    pairs = _pairs(n)
    for pair in pairs:
        pair.popped()
    return len(pairs[0].rows[0])


ELSEWHERE = (
    one_list_twice, replaced_in_the_loop, moved_by_another_name, replaced_by_another_name, popped_in_between,
)  # fmt: skip


@pytest.mark.parametrize("program", ELSEWHERE, ids=lambda program: program.__name__)
def test_an_element_that_may_be_elsewhere_by_then_is_not_stored_back(program: Callable[..., Any]) -> None:
    if program is moved_by_another_name:
        with pytest.raises(pcbatch.CompileError, match="PCB330"):
            pcbatch.batch(program)(np.array(LANES))
        return
    result = pcbatch.batch(program)(np.array(LANES))
    for place, n in enumerate(LANES):
        assert alike(as_plain(lane_of(result, place)), as_plain(program(n)), 0)
