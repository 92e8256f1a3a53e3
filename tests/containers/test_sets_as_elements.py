"""Sets and dicts in lists, and behind the keys of a sort; sets that methods give, and nobody asks for their order."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import pcbatch
from tests.strangers.rows import as_plain, lane_of

pytestmark = pytest.mark.promotion("standard")
NUMBERS = (1, 2, 3, 5, 6, 9)


def written_out(n):
    """The first set of a loop over a range is known while compiling."""
    rows, texts = [], []
    for k in range(n):
        rows.append({k, k + 1} if k % 3 else {k})
        texts.append((k, {"ab"[k % 2], "b"}))
    rows[n // 2].add(n * 2)
    return rows, [len(row) for _, row in texts], [{(k, n)} for k in range(n)]


def merged(n):
    """Sets that take the elements of one another hold no common objects, as elements cannot be changed."""
    sets, dicts = [{k} for k in range(n)], [{k: k} for k in range(n)]
    reached = {k: {k} for k in range(n)}
    for k in range(n - 1):
        i, j = k * 3 % n, k * 5 % n
        if i != j:
            sets[i] |= sets[j]
            sets[j] = set()
        reached[k + 1].update(reached[k])
        reached[i] ^= reached[n - 1]
        sets[j] -= sets[k]
        dicts[k + 1].update(dicts[k // 2])
        dicts[k // 3][n] = k
    return [sorted(s) for s in sets], {k: sorted(s) for k, s in reached.items()}, dicts


def sorted_with_sets(n):
    groups = defaultdict(set)
    for k in range(n):
        groups[k * 7 % 5].add(k)
    return {key: len(values) for key, values in sorted(groups.items())}


def sorted_with_dicts(n):
    graph = {}
    for k in range(n):
        graph.setdefault(k * 7 % 5, {})[k] = k + 1
    named = sorted((k * 5 % 7, {"at": k}) for k in range(min(n, 6)))
    return (
        [(key, len(values)) for key, values in sorted(graph.items(), reverse=True)],
        named[-1][1]["at"],
        min(named)[0],
    )


class Grid:
    def __init__(self, n):
        self.cells = {(x, y): x * n + y for x in range(-2, 4) for y in range(-2, 4)}
        self.after = defaultdict(set)

    def around(self, x, y):
        return {(x - 1, y), (x, y - 1)} | {(x, y + 1)} - {(0, 0)}

    def free(self, x, y):
        used = {self.cells[place] for place in self.around(x, y)}
        return [v for v in range(9) if v not in used]

    def chained(self, names):
        for k, name in enumerate(names):
            self.after[name].add(names[k - 1])
        found = []
        for name in names:
            for other in sorted(self.after[name]):
                found.append(other)
        return found


def given_by_methods(n):
    grid = Grid(n)
    return grid.free(n % 3, 1), max(x + y for x, y in grid.around(n % 4, 0)), grid.chained(["a", "b", "c", "a"][:n])


class Element:
    """One of a tree, with attributes by name, of which each element has others."""

    def __init__(self, kind, attributes):
        self.kind, self.attributes = kind, attributes
        self.children = []

    def total(self, name):
        return self.attributes.get(name, 0) + sum(child.total(name) for child in self.children)


def named_in_records(n):
    root = Element("root", {"width": n, "height": 2})
    for k in range(n):
        child = Element("leaf", {"width": k} if k % 2 else {"height": k, "width": 1})
        root.children.append(child)
        child.attributes["width"] *= 2
        child.attributes["depth"] = n
    last = root.children[-1]
    bare = Element("bare", {})
    last.children.append(bare)
    return root.total("width"), root.total("depth"), [*last.attributes.items()], root.attributes


@pytest.mark.parametrize(
    "function", [written_out, merged, sorted_with_sets, sorted_with_dicts, given_by_methods, named_in_records]
)
def test_lanes_give_what_python_gives(function: Callable[[int], Any]) -> None:
    found = pcbatch.batch(function)(np.array(NUMBERS))
    for lane, n in enumerate(NUMBERS):
        assert str(as_plain(lane_of(found, lane))) == str(as_plain(function(n))), n


def equal_keys(n):
    sets, dicts = [], []
    for k in range(n):
        sets.append((k % 4, {k, n}, -k))
        dicts.append((k % 6, {k: n}))
    return [last for _, _, last in sorted(sets)], [key for key, _ in sorted(dicts)]


def test_equal_keys_in_front_of_sets_and_dicts_end_the_lane() -> None:
    """Python compares the sets then, of which one holds the other or not, and raises for dicts."""
    numbers = (3, 4, 5, 7)
    found = pcbatch.batch(equal_keys).run(np.array(numbers))
    assert (np.asarray(found.status) != 0).tolist() == [False, False, True, True]
    assert as_plain(lane_of(found.value, 1)) == as_plain(equal_keys(4))
