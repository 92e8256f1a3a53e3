"""Loops over `map`, `filter`, `zip` and the like: Python makes each element when it is asked for, and sees changes."""

from __future__ import annotations

from collections.abc import Callable
from itertools import accumulate, chain, combinations, count, groupby, islice, pairwise, starmap, takewhile
from typing import Any

import numpy as np
import pytest

import pcbatch
from tests.strangers.rows import alike, as_plain, lane_of

LANES = (1, 2, 3)


class Node:
    def __init__(self, v):
        self.v = v
        self.other = None
        self.xs = [v]

    def bump(self, n):
        self.v += n

    def get(self):
        return self.v


def three():
    nodes = [Node(1), Node(2), Node(3)]
    nodes[0].other = nodes[2]
    return nodes


def bump(node, n):
    node.v += n
    return node.v


def lengths_by_another_name(n):
    rows = [[1], [2], [3]]
    r = max(rows, key=lambda x: x[0])
    t = 0
    for s in map(len, rows):
        r.append(n)
        t = t * 10 + s
    for a, s in zip(rows, map(len, rows)):
        r.append(n)
        t = t * 10 + s + a[0]
    return t


def parts_of_streams(n):
    rows = [[1], [2], [3], [4]]
    r = rows[2]
    t = 0
    for s in islice(map(len, rows), 3):
        r.append(n)
        t = t * 10 + s
    for s in accumulate(map(len, rows)):
        r.append(n)
        t = t * 10 + s
    for s in chain(map(len, rows), map(sum, rows)):
        r.append(n)
        t = (t * 3 + s) % 10007
    for s in takewhile(lambda v: v < 9, map(len, rows)):
        r.append(n)
        t = (t * 3 + s) % 10007
    for a, b in pairwise(map(len, rows)):
        r.append(n)
        t = (t * 3 + a + b) % 10007
    for a in starmap(lambda *v: sum(v), [[1], [2]]):
        t = (t * 3 + a) % 10007
    return t


def own_elements(n):
    xs = [1, 2, 3]
    t = 0
    for a in map(lambda v: v * 2, xs):
        xs[2] += n
        t = t * 10 + a
    for a, b in zip(xs, (v * 2 for v in xs)):
        xs[2] += n
        t = t * 10 + a + b
    for a, b in zip(map(lambda v: v + 1, xs), map(lambda v: v * 2, xs)):
        if len(xs) < 7:
            xs.append(n)
        t = (t * 7 + a * b) % 10007
    for a in map(lambda v: v + xs[2], [1, 2, 3]):
        xs[2] += n
        t = t * 10 + a
    return t


def two_sources(n):
    xs, ys = [1, 2, 3], [4, 5, 6]
    t = 0
    for a in map(lambda v, w: v * w, xs, ys):
        ys[2] += n
        t = t * 10 + a
    return t


def elements_of_a_dict(n):
    d = {1: [1], 2: [2], 3: [3]}
    t = 0
    for _, v in map(lambda k: (k, len(d[k])), d):
        d[3].append(n)
        t = t * 10 + v
    return t


def list_that_has_two_names(n):
    out = []
    t = 0
    for a in map(len, [out, [1, 2], out]):
        out.append(n)
        t = t * 10 + a
    return t


def rows_beside_numbers(n):
    rows = [[1], [2], [3]]
    r = rows[2]
    t = 0
    for i, (a, s) in enumerate(zip(count(5), map(len, rows))):
        r.append(n)
        t = t * 10 + s + i + a
    return t


def fields(n):
    nodes = three()
    r = nodes[0].other
    t = 0
    for s in map(lambda x: x.v, nodes):
        r.v += n
        t = t * 10 + s
    for s in map(Node.get, nodes):
        r.bump(n)
        t = t * 10 + s
    for i, s in enumerate(map(lambda x: x.get(), nodes)):
        bump(r, n)
        t = t * 10 + s + i
    return t


def fields_in_turns(n):
    nodes = three()
    r = nodes[0].other
    t = 0
    for a, b, c in zip(nodes, map(lambda x: x.v, nodes), map(lambda x: 2 * x.v, reversed(nodes))):
        r.v += n
        t = t * 10 + a.v + b + c
    return t


def fields_in_itertools(n):
    nodes = three()
    r = nodes[0].other
    t = 0
    for s in islice((x.v for x in nodes), 3):
        r.v += n
        t = t * 10 + s
    for s in accumulate(x.v for x in nodes):
        r.v += n
        t = (t * 10 + s) % 10007
    for s in accumulate(nodes, lambda a, b: a + b.v, initial=0):
        r.v += n
        t = (t * 10 + s) % 10007
    for a, b in pairwise(x.v for x in nodes):
        r.v += n
        t = (t * 10 + a * b) % 10007
    for a, b in combinations(map(lambda x: x.v, nodes), 2):
        r.v += n
        t = (t * 10 + a * b) % 10007
    return t


def container_of_a_field(n):
    nodes = three()
    q = nodes[0].other.xs
    t = 0
    for s in map(lambda x: sum(x.xs), nodes):
        q.append(n)
        t = t * 10 + s
    return t


def lists_are_made_before(n):
    nodes = three()
    r = nodes[0].other
    t = 0
    for s in [x.v if x.v < 100 else n for x in nodes]:
        r.v += n
        t = t * 10 + s
    for s in sorted(map(lambda x: x.v, nodes)):
        r.v += n
        t = t * 10 + s
    return t


def values(nodes):
    for x in nodes:
        yield x.v


def of_a_generator(n):
    nodes = three()
    r = nodes[0].other
    t = 0
    for a, s in zip(values(nodes), map(lambda x: x.v, nodes)):
        r.v += n
        t = t * 10 + s + a
    return t, [bump(r, v) for v in map(lambda x: x.v, nodes)], sum(x.v * bump(r, n) for x in nodes)


def walk(nodes, k):
    if k < len(nodes):
        yield sum(nodes[k].xs)
        yield from walk(nodes, k + 1)


def relay(nodes):
    yield from walk(nodes, 0)


def what_the_walk_does_not_read(n):
    nodes = three()
    out, seen, best, total = [], set(), {"a": 0}, Node(0)
    for s in walk(nodes, 0):
        out.append(s)
        seen.add(s + n)
        best["a"] = max(best["a"], s)
        total.v += s
        nodes[1].v += n
    return out, len(seen), best["a"], total.v


def loops_in_loops(n):
    nodes = three()
    t = 0
    for s in relay(nodes):
        for q in walk(nodes, 1):
            t += q
        t += s + n
    for s in list(walk(nodes, 0)):
        nodes[2].xs.append(n)
        t += s
    return t


def counted(n):
    grid = [[0] * 3 for _ in range(3)]
    counts = {}
    for a, b in zip(map(lambda v: v % 3, [1, 2, n]), map(lambda v: (v + n) % 3, [1, 2, 3])):
        grid[a][b] += 1
        counts[a] = counts.get(a, 0) + b
    marks = [[0], [0]]
    for a in chain(*grid):
        marks[0][0] += a
    return grid, counts, marks


PROGRAMS = (
    lengths_by_another_name, parts_of_streams, own_elements, two_sources, elements_of_a_dict, list_that_has_two_names,
    rows_beside_numbers, fields, fields_in_turns, fields_in_itertools, container_of_a_field, lists_are_made_before,
    of_a_generator, what_the_walk_does_not_read, loops_in_loops, counted,
)  # fmt: skip


@pytest.mark.parametrize("program", PROGRAMS)
def test_an_element_is_what_it_is_when_it_is_asked_for(program: Callable[..., Any]) -> None:
    result = pcbatch.batch(program)(np.array(LANES))
    for place, n in enumerate(LANES):
        assert alike(as_plain(lane_of(result, place)), as_plain(program(n)), 0)


def columns(n):
    rows = [[1, 2], [2, 3]]
    r = rows[1]
    t = 0
    for a, b in zip(*rows):
        r[1] += n
        t = t * 10 + a + b
    return t


def joined(n):
    rows = [[1], [2]]
    t = 0
    for a in chain.from_iterable(rows):
        if len(rows[1]) < 4:
            rows[1].append(n)
        t = t * 10 + a
    return t


def chosen(n):
    rows = [[1], [2]]
    r = rows[1]
    t = 0
    for s in map(len, rows) if n > 1 else map(sum, rows):
        r.append(n)
        t = t * 10 + s
    return t


def two_filters(n):
    rows = [[1], [2]]
    r = rows[1]
    t = 0
    for a, b in zip(filter(len, rows), filter(sum, rows)):
        r.append(n)
        t = t * 10 + len(a) + len(b)
    return t


def groups(n):
    nodes = three()
    r = nodes[0].other
    t = 0
    for _, run in groupby(nodes, key=lambda x: x.v):
        r.v -= n
        t = t * 10 + sum(1 for _ in run)
    return t


def walked(n):
    nodes = three()
    q = nodes[0].other.xs
    t = 0
    for s in walk(nodes, 0):
        q.append(n)
        t += s
    return t


def walked_by_another(n):
    nodes = three()
    r = nodes[0].other
    t = 0
    for s in relay(nodes):
        r.xs.append(n)
        t += s
    return t


def fill(nodes, n):
    for x in nodes:
        x.xs.append(n)
    return 0


def walked_in_a_comprehension(n):
    nodes = three()
    return [fill(nodes, n) + s for s in walk(nodes, 0)]


def bump_by_another(node, n):
    return bump(node, n)


def walk_values(nodes, k):
    if k < len(nodes):
        yield nodes[k].v
        yield from walk_values(nodes, k + 1)


def walked_by_two_functions(n):
    nodes = three()
    r = nodes[0].other
    t = 0
    for s in walk_values(nodes, 0):
        bump_by_another(r, n)
        t = t * 10 + s
    return t


REFUSED = {
    columns: "PCB330", joined: "PCB330", chosen: "PCB121", two_filters: "PCB121", groups: "PCB121", walked: "PCB105",
    walked_by_another: "PCB105", walked_by_two_functions: "PCB105", walked_in_a_comprehension: "PCB105|PCB330",
}  # fmt: skip


@pytest.mark.parametrize("program", REFUSED)
def test_what_lanes_would_make_before_is_refused(program: Callable[..., Any]) -> None:
    with pytest.raises(pcbatch.CompileError, match=REFUSED[program]):
        pcbatch.batch(program)(np.array(LANES))
