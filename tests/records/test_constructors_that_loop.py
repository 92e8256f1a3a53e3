"""Objects whose `__init__` calls methods of theirs in a loop, and functions that go over objects by `__iter__`."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import pcbatch
from tests.strangers.rows import alike, as_plain, lane_of

LANES = [1, 2, 3]


class Node:
    def __init__(self, value, next=None):
        self.value, self.next = value, next


class Linked:
    """A linked list, of which elements are added at the end."""

    def __init__(self, values=()):
        self.head = None
        self.tail = None
        self.length = 0
        for v in values:
            self.append(v)

    def append(self, value):
        node = Node(value)
        if self.head is None:
            self.head = self.tail = node
        else:
            self.tail.next = node
            self.tail = node
        self.length += 1

    def __iter__(self):
        node = self.head
        while node is not None:
            yield node.value
            node = node.next

    def __len__(self):
        return self.length

    def best(self):
        return max(self), sum(self), any(v > 1 for v in self)


def elements(n):
    items = Linked(list(range(n)))
    return list(items), items.length, len(items), items.tail.value


def walked(n):
    items = Linked(list(range(n)))
    node, total = items.head, 0
    while node is not None:
        total = total * 10 + node.value + 1
        node = node.next
    return total


def appended_later(n):
    items = Linked([n, 2])
    for k in range(n):
        items.append(k)
    return [v for v in items], items.tail.value


def builtins_of_elements(n):
    items = Linked(list(range(n)))
    return sum(items), max(items), min(items, key=lambda v: -v), sorted(items), any(items), all(items)


def builtins_in_a_method(n):
    return Linked(list(range(n))).best(), Linked([n, 2]).best()


def other_functions(n):
    items = Linked(list(range(n)))
    return tuple(items), [i * v for i, v in enumerate(items)], len(set(items)), [*items, 7], 2 in list(items)


PROGRAMS = (elements, walked, appended_later, builtins_of_elements, builtins_in_a_method, other_functions)


@pytest.mark.parametrize("program", PROGRAMS, ids=lambda program: program.__name__)
def test_constructors_that_loop(program: Callable[[int], Any]) -> None:
    found = pcbatch.batch(program)(np.array(LANES))
    for k, n in enumerate(LANES):
        assert alike(as_plain(lane_of(found, k)), as_plain(program(n)), 0.0), (program.__name__, n)


def test_elements_that_end_by_the_lane_are_not_unpacked() -> None:
    with pytest.raises(pcbatch.CompileError, match="go over the object"):

        @pcbatch.batch
        def first(n):
            a, *rest = Linked(list(range(n + 1)))
            return a, rest

        first(np.array(LANES))
