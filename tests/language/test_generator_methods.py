"""Methods that are generators: loops and builtins that go over them have the elements of the object of each lane."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import pcbatch

pytestmark = pytest.mark.promotion("standard")


class Bag:
    def __init__(self):
        self.xs = []

    def add(self, x):
        self.xs.append(x)

    def items(self):
        for k in range(len(self.xs)):
            yield k, self.xs[k]

    def evens(self, least):
        for x in self.xs:
            if x % 2 == 0 and x >= least:
                yield x

    def total(self):
        total = 0
        for k, x in self.items():
            total += k * x
        return total

    def steps(self, x):
        """A method that branches, for `weighed`."""
        count = 0
        while x > 1:
            x //= 2
            count += 1
        return count

    def weighed(self):
        for x in self.xs:
            yield self.steps(x) + 1


class Sparse(Bag):
    def items(self):
        for k in range(0, len(self.xs), 2):
            yield k, self.xs[k]


class Tree:
    def __init__(self, key):
        self.key = key
        self.left = None
        self.right = None

    def add(self, key):
        if key < self.key:
            if self.left is None:
                self.left = Tree(key)
            else:
                self.left.add(key)
        elif self.right is None:
            self.right = Tree(key)
        else:
            self.right.add(key)

    def walk(self):
        if self.left is not None:
            yield from self.left.walk()
        yield self.key
        if self.right is not None:
            yield from self.right.walk()


def filled(kind, a, b):
    bag = kind()
    for i in range(a % 7):
        bag.add(i * b)
    return bag


def in_a_loop(a, b):
    bag, total = filled(Bag, a, b), 0
    for k, x in bag.items():
        if x > 40:
            break
        total += k * x
    return total


def in_methods_and_builtins(a, b):
    bag = filled(Bag, a, b)
    return bag.total() + sum(bag.evens(3)) + len([x for x in bag.evens(0)]) + max(bag.evens(0), default=0)


def beside_a_dict(a, b):
    """A method of the same name of Python's own."""
    bag, known, counts = filled(Bag, a, b), {"p": a, "q": b}, {}
    for i in range(b % 5):
        counts[i] = a
    total = sum(k * x for k, x in bag.items()) + sum(v for _, v in counts.items())
    for _, v in known.items():
        total += v
    return total


def of_two_classes(a, b):
    bag = filled(Bag, a, b) if a > 9 else filled(Sparse, a, b)
    return sum(k * x for k, x in bag.items()) + bag.total()


def of_objects_in_a_list(a, b):
    bags, total = [filled(Bag, a, b), filled(Bag, b, a)], 0
    for bag in bags:
        for k, x in bag.items():
            total += k + x
    return total + sum(bags[a % 2].evens(2))


def that_goes_over_itself(a, b):
    tree, total = Tree(b), 0
    for i in range(a % 7):
        tree.add(i * 7 % 5)
    for x in tree.walk():
        total = total * 3 + x
    return total + sum(tree.walk())


def that_calls_methods(a, b):
    return sum(filled(Bag, a, b).weighed())


PROGRAMS = [
    in_a_loop,
    in_methods_and_builtins,
    beside_a_dict,
    of_two_classes,
    of_objects_in_a_list,
    that_goes_over_itself,
    that_calls_methods,
]


@pytest.mark.parametrize("fn", PROGRAMS, ids=lambda fn: fn.__name__)
def test_the_elements_are_those_of_python(fn: Callable[[int, int], Any]) -> None:
    firsts, seconds = np.array([5, 60, 3]), np.array([7, 14, 33])
    found = pcbatch.batch(fn)(firsts, seconds).tolist()
    assert found == [fn(a, b) for a, b in zip(firsts.tolist(), seconds.tolist(), strict=True)]
