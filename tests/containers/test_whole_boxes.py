"""Objects with several names: what a `defaultdict` stores, whole values of what holds them, and copies of that."""

from __future__ import annotations

import copy
from collections import OrderedDict, defaultdict
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import pcbatch
from tests.strangers.rows import alike, as_plain, lane_of

LANES = [1, 2, 3]


def stored_default(n):
    groups = defaultdict(list)
    group = groups["a"]
    group.append(n)
    groups["a"].append(5)
    return dict(groups), group


def stored_default_of_defaults(n):
    tables = defaultdict(lambda: defaultdict(list))
    table = tables["a"]
    table[3].append(n)
    return len(tables["a"])


def default_that_a_statement_stores(n):
    groups = defaultdict(list)
    groups[n]
    group = groups[n]
    group.append(n)
    return dict(groups)


def add_edge(graph, u, v):
    graph.setdefault(u, []).append(v)
    graph.setdefault(v, [])
    return graph[u]


def default_that_a_helper_stores(n):
    graph = {}
    found = add_edge(graph, 1, 2)
    found.append(n)
    add_edge(graph, 2, n)
    return graph


def keys_in_order(n):
    cache = {}

    def get(k):
        if k not in cache:
            cache[k] = [k * k]
        return cache[k]

    first = get(1)
    first.append(n)
    get(n)
    return sorted(cache), max(cache), first, cache[1]


def whole_lists(n):
    rows = [[1], [2, 3]]
    row, least = rows[n % 2], min(rows, key=sum)
    row.append(n)
    least.append(1)
    equal = rows == [[1, 1], [2, 3, 1]]
    return [1] in rows, [2, 3] in rows, equal, rows.index(row), rows.count([1]), row in rows, row not in rows


def values_of_a_dict(n):
    rows = {"a": [1], "b": [2]}
    row = rows["a"] if n > 1 else rows["b"]
    row.append(n)
    return rows == {"a": [1, 2], "b": [2]}, n in rows["a"], str(rows)


def copies(n):
    rows = [[1], [2, 3]]
    least = min(rows, key=lambda row: row[0] * n)
    least.append(1)
    deep, shallow = copy.deepcopy(rows), copy.copy(rows)
    deep[0].append(8)
    shallow[1].append(9)
    shallow.append([n])
    return rows, deep, shallow, f"{rows} {least}"


def history(n):
    board = [[0, 0], [0, 0]]
    seen, row = [copy.deepcopy(board)], board[0]
    for k in range(n):
        row[k % 2] += 1
        row = board[k % 2]
        if board not in seen:
            seen.append(copy.deepcopy(board))
    return len(seen), seen[-1]


class Cache:
    def __init__(self, size):
        self.size = size
        self.items = OrderedDict()

    def get(self, key):
        if key not in self.items:
            return None
        self.items.move_to_end(key)
        return self.items[key]

    def put(self, key, value):
        self.items[key] = value
        self.items.move_to_end(key)
        if len(self.items) > self.size:
            self.items.popitem(last=False)


def least_used(n):
    cache, first = Cache(2), [n]
    cache.put(1, first)
    cache.put(2, [2])
    found = cache.get(1)
    found.append(5)
    cache.put(3, [3])
    return first, cache.get(2) is None, list(cache.items)


def moved_disks(n):
    pegs, moves = [[3, 2, 1], [], []], 0

    def move(count, source, target, spare):
        nonlocal moves
        if count == 0:
            return
        move(count - 1, source, spare, target)
        target.append(source.pop())
        moves += 1
        move(count - 1, spare, target, source)

    move(n, pegs[0], pegs[2], pegs[1])
    return pegs, moves


def rows_backwards(n):
    rows = [[k] for k in range(3)]
    for row in reversed(rows):
        row.append(n)
    for above, row in zip(rows, rows[1:], strict=False):
        row.append(len(above))
    return rows


def defaults_that_are_made_always(n):
    stack, groups = [5, 6, 7, 8], {}
    for k in [1, 2, 1, n]:
        groups.setdefault(k, [stack.pop()]).append(k)
        least = min(groups.values(), key=len)
        least.append(0)
    return groups, stack


def named_in_a_test(n):
    groups = {1: [1], 2: [2]}
    if (group := groups.get(n)) is not None:
        group.append(9)
    while (group := groups.get(2)) and len(group) < 4:
        group.append(len(group))
    return groups


def rows_of_a_generator(n):
    rows = [[1], [2]]

    def each():
        for row in rows:
            if row:
                yield row

    for row in each():
        row.append(n)
    first = next(each())
    first.append(3)
    return rows


def one_value_of_all_keys(n):
    counts = dict.fromkeys([1, 2, 3], 0)
    same, rows = counts, dict.fromkeys([1, 2], [])
    same[n] += 5
    rows[1].append(n)
    return counts, rows


def sums_as_they_are_asked(n):
    rows = [[1], [2], [3]]
    r = max(rows, key=lambda x: x[0])
    t = 0
    for s in (sum(x) for x in rows):
        r.append(n)
        t = t * 10 + s
    return t


def yielded_as_they_are_asked(n):
    def gen(rows):
        for x in rows:
            yield sum(x)

    rows = [[1], [2], [3]]
    r = max(rows, key=lambda x: x[0])
    t = 0
    for i, s in enumerate(gen(rows)):
        r[0] += n
        t = t * 10 + s * i
    for s, q in zip(gen(rows), rows):
        r[0] += n
        t = t * 10 + s
    for i, s in enumerate(sum(x) for x in rows):
        r[0] += n
        t = t * 10 + s
    return t


def yielded_all_at_once(n):
    def walk(rows, k):
        if k < len(rows):
            yield rows[k][0]
            yield from walk(rows, k + 1)

    rows = [[1], [2], [3]]
    r = max(rows, key=lambda x: x[0])
    t = 0
    for s in walk(rows, 0):
        r[0] += n
        t = t * 10 + s
    return t


PROGRAMS = (
    sums_as_they_are_asked, yielded_as_they_are_asked,
    stored_default, stored_default_of_defaults, default_that_a_statement_stores, default_that_a_helper_stores,
    keys_in_order, whole_lists, values_of_a_dict, copies, history, least_used,
    moved_disks, rows_backwards, defaults_that_are_made_always, named_in_a_test, rows_of_a_generator,
    one_value_of_all_keys,
)  # fmt: skip


@pytest.mark.parametrize("program", PROGRAMS, ids=lambda program: program.__name__)
def test_all_names_show_a_change(program: Callable[..., Any]) -> None:
    result = pcbatch.batch(program)(np.array(LANES))
    for place, n in enumerate(LANES):
        assert alike(as_plain(lane_of(result, place)), as_plain(program(n)), 0)


def test_a_generator_that_goes_over_itself_is_refused() -> None:
    with pytest.raises(pcbatch.CompileError, match="PCB330"):
        pcbatch.batch(yielded_all_at_once)(np.array(LANES))
