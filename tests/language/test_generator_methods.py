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


class Counter:
    """Counts how many elements it has made."""

    def __init__(self):
        self.made = 0

    def up(self, k):
        if k > 0:
            self.made += 1
            yield k
            yield from self.up(k - 1)

    def flat(self, k):
        for i in range(k):
            self.made += 1
            yield i

    def endless(self):
        while True:
            self.made += 1
            yield self.made


def zipped_before(a, b):
    counter, total = Counter(), 0
    for k, i in zip(counter.flat(5), range(a % 7)):
        total += k * i
    return counter.made * 100 + total


def zipped_behind(a, b):
    counter, total = Counter(), 0
    for i, k in zip(range(a % 7), counter.flat(5)):
        total += k * i
    return counter.made * 100 + total


def zipped_between(a, b):
    counter, total, xs = Counter(), 0, [a, 2, 3]
    for i, k, j in zip(xs, counter.endless(), range(b % 5)):
        total += k * i + j
        if total > 90:
            break
    return counter.made * 100 + total


def zipped_with_known_ones(a, b):
    text = ""
    for name, k in zip(("ab", "c", "d"), Counter().flat(a % 7)):
        text += name + str(k)
    return len(text) + sum(x * k for x, k in zip([3, a, b], Counter().flat(5)))


def taken_early(a, b):
    counter = Counter()
    return next(x for x in counter.endless() if x % b == 0) * 100 + counter.made


def all_taken(a, b):
    counter, total = Counter(), 0
    for k in counter.up(5):
        total += k * a
    return counter.made + total


PROGRAMS = [
    zipped_before,
    zipped_behind,
    zipped_between,
    zipped_with_known_ones,
    taken_early,
    all_taken,
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


def left_early(a, b):
    counter = Counter()
    for k in counter.up(5):
        if k <= a:
            break
    return counter.made


def read_in_the_loop(a, b):
    counter, total = Counter(), 0
    for k in counter.up(5):
        total += k * counter.made
    return total


@pytest.mark.parametrize("fn", [left_early, read_in_the_loop], ids=lambda fn: fn.__name__)
def test_changes_of_one_that_goes_over_itself_are_not_made_early(fn: Callable[[int, int], Any]) -> None:
    with pytest.raises(pcbatch.CompileError, match="changes objects, and the loop over it may see that"):
        pcbatch.batch(fn)(np.array([1, 2]), np.array([1, 2]))


class Counted(Bag):
    def __init__(self):
        self.xs, self.made = [], 0

    def counted(self):
        for x in self.xs:
            self.made += 1
            yield x


def any_of_a_choice(a, b):
    bag = filled(Counted, a, b) if a > 5 else filled(Counted, b, a)
    return any(x > b for x in bag.counted()), bag.made


def test_elements_are_not_made_early() -> None:
    firsts, seconds = np.array([5, 60, 3]), np.array([7, 14, 33])
    try:
        found = [part.tolist() for part in pcbatch.batch(any_of_a_choice)(firsts, seconds)]
    except pcbatch.CompileError:
        return  # a list of all elements would be another program
    assert list(zip(*found, strict=True)) == [
        any_of_a_choice(a, b) for a, b in zip(firsts.tolist(), seconds.tolist(), strict=True)
    ]
