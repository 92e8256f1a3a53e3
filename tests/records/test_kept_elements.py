"""Elements of a container that a selection gives, or a method keeps in an attribute, are the objects themselves."""

from __future__ import annotations

import heapq
from collections.abc import Callable
from typing import Any

import pytest

from tests.strangers.rows import Row

pytestmark = [pytest.mark.promotion("standard")]


class Part:
    def __init__(self, x):
        self.x = x
        self.seen = 0


class Box:
    def __init__(self, xs):
        self.parts = [Part(x) for x in xs]
        self.parts.append(Part(1))
        self.current = Part(0)

    def last(self):
        self.current = self.parts[-1]

    def least(self):
        self.current = sorted(self.parts, key=lambda part: part.x)[0]

    def greatest(self):
        self.current = max(self.parts, key=lambda part: part.x, default=self.current)

    def greater(self):
        self.current = max(self.parts[0], self.current, key=lambda part: part.x)

    def taken(self):
        self.current = self.parts.pop()

    def bump(self):
        self.current.x += 100


def with_a_default(xs):
    parts = [Part(x) for x in xs]
    other = Part(0)
    best = max(parts, key=lambda part: part.x % 3, default=other)
    best.x += 100
    first = min(parts[1:], key=lambda part: part.x, default=other)
    first.seen += 1
    return [part.x for part in parts], [part.seen for part in parts], other.x, other.seen


def of_pairs(xs):
    pairs = {x: Part(x) for x in xs}
    chosen = max(pairs.items(), key=lambda pair: pair[0], default=(0, Part(5)))
    chosen[1].x += 50
    return [part.x for part in pairs.values()], chosen[1].x


def kept_by_methods(xs):
    found = []
    for which in range(5):
        box = Box(xs)
        if which == 0:
            box.last()
        elif which == 1:
            box.least()
        elif which == 2:
            box.greatest()
        elif which == 3:
            box.greater()
        else:
            box.taken()
        box.bump()
        found.append(sum(part.x for part in box.parts) * 1000 + box.current.x)
    return found


def kept_from_a_heap(xs):
    heap = [[x, 0] for x in xs]
    heapq.heapify(heap)
    mine = [3, 0]
    least = heapq.heappushpop(heap, mine)
    return least[0], mine[0], sorted(x for x, _ in heap)


EXAMPLES = (([5, 6, 7],), ([],), ([1, 0, 2],), ([4, 4, 4, 4],), ([2, 1, 0, 9],))
FUNCTIONS = (with_a_default, of_pairs, kept_by_methods, kept_from_a_heap)


@pytest.mark.parametrize("function", FUNCTIONS)
def test_changes_are_those_of_the_element(function: Callable[..., Any]) -> None:
    row = Row("elements", function, EXAMPLES, new=False, rtol=0.0, refused="")
    assert not row.differences()
