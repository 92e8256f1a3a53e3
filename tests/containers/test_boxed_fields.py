"""Lists and dicts in fields of the user's classes that have several names, of which one changes them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pytest

import pcbatch
from tests.strangers.rows import alike, as_plain, lane_of

LANES = [1, 2, 3]


class Bank:
    def __init__(self):
        self.rows = [[0], [1], [2]]

    def get(self, k):
        return self.rows[k]


def row_of_a_method(n):
    bank = Bank()
    r = bank.get(n % 3)
    r.append(n)
    return bank.rows


class Stack:
    def __init__(self):
        self.items = []
        self.log = []

    def push(self, x):
        self.items.append(x)
        self.log.append(("push", x))

    def top(self):
        return self.items[-1]


def pushed_and_changed(n):
    s = Stack()
    row = []
    s.push(row)
    row.append(n)
    return len(s.top())


class Board:
    def __init__(self, n):
        self.cells = [[0] * n for _ in range(n)]

    def neighbours(self, r, c):
        out = []
        for row in self.cells[max(0, r - 1) : r + 2]:
            out.append(row[c])
        return out

    def mark(self, r, v):
        row = self.cells[r]
        for c in range(len(row)):
            row[c] = v


def row_of_a_board(n):
    b = Board(3)
    b.mark(n % 3, 5)
    return b.cells, b.neighbours(1, 1)


@dataclass
class Team:
    name: str
    members: list = field(default_factory=list)


def list_of_a_dataclass(n):
    teams = [Team("x"), Team("y")]
    for i in range(n + 2):
        t = min(teams, key=lambda t: len(t.members))
        m = t.members
        m.append(i)
    return [t.members for t in teams]


def teams_as_results(n):
    teams = [Team("x"), Team("y")]
    m = teams[n % 2].members
    m.append(n)
    return teams


class Vertex:
    def __init__(self, key):
        self.key = key
        self.edges = []


class Graph:
    def __init__(self):
        self.nodes = {}

    def node(self, k):
        if k not in self.nodes:
            self.nodes[k] = Vertex(k)
        return self.nodes[k]

    def link(self, a, b):
        self.node(a).edges.append(b)
        es = self.node(b).edges
        es.append(a)


def edges_of_a_graph(n):
    g = Graph()
    g.link(0, 1)
    g.link(1, n)
    return [len(g.node(k).edges) for k in range(4)]


class Link:
    def __init__(self, key):
        self.key = key
        self.edges = []
        self.next = None


def ring_with_edges(n):
    a = Link(1)
    b = Link(2)
    a.next = b
    b.next = a
    es = a.edges
    es.append(n)
    b.edges.append(7)
    return a.next.edges, a.edges, [len(x.edges) for x in (a, b)]


PROGRAMS = (
    row_of_a_method, pushed_and_changed, row_of_a_board, list_of_a_dataclass, teams_as_results,
    edges_of_a_graph, ring_with_edges,
)  # fmt: skip


@pytest.mark.parametrize("program", PROGRAMS, ids=lambda program: program.__name__)
def test_all_names_show_a_change(program: Callable[[int], Any]) -> None:
    results = pcbatch.batch(program)(np.array(LANES))
    for k, n in enumerate(LANES):
        assert alike(as_plain(lane_of(results, k)), as_plain(program(n)), 0.0), (program.__name__, n)
