"""Records made in lanes that are changed, lead to themselves, hold lists, and are results."""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import Enum
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import pcbatch
from tests.strangers.rows import Row

pytestmark = [pytest.mark.share(3), pytest.mark.promotion("standard")]


class Node:
    def __init__(self, value, next=None):
        self.value = value
        self.next = next


class Colour(Enum):
    RED = 1
    BLACK = 2


@dataclass
class Tree:
    key: int
    children: list = field(default_factory=list)

    def total(self):
        return self.key + sum(child.total() for child in self.children)

    def __contains__(self, child):
        found = 0
        for each in self.children:
            if each == child:
                found += 1
        return found


class Square:
    sides = 4

    def __init__(self, side):
        self.side = side

    def area(self):
        return self.side * self.side


class Disc:
    sides = 0

    def __init__(self, radius, scale):
        self.radius = radius
        while scale > 1:
            self.radius += 1
            scale -= 1

    def area(self):
        return 3 * self.radius * self.radius


class LRU:
    def __init__(self, room):
        self.room = room
        self.found = {}
        self.first, self.last = Link(), Link()
        self.first.next, self.last.prev = self.last, self.first

    def remove(self, link):
        link.prev.next, link.next.prev = link.next, link.prev

    def insert(self, link):
        before = self.last.prev
        before.next = self.last.prev = link
        link.prev, link.next = before, self.last

    def get(self, key):
        if key not in self.found:
            return -1
        self.remove(self.found[key])
        self.insert(self.found[key])
        return self.found[key].value

    def put(self, key, value):
        self.found[key] = Link(key, value)
        self.insert(self.found[key])
        if len(self.found) > self.room:
            oldest = self.first.next
            self.remove(oldest)
            del self.found[oldest.key]


class Link:
    def __init__(self, key=0, value=0):
        self.key, self.value = key, value
        self.prev = self.next = None


def names_of_one_object(n):
    a = Node(n)
    b = a
    b.value = 5
    a.value += 1
    xs = [a, b]
    xs[n % 2].value *= 10
    return a.value, b.value, xs[0].value


def objects_in_lists_and_dicts(n):
    nodes = [Node(k) for k in range(n)]
    by_value = {}
    for node in nodes:
        node.value += 1
        by_value[node.value] = node
    for i in range(n - 1):
        nodes[i].next = nodes[i + 1]
    nodes[-1].next = nodes[0]
    second = nodes[1]
    second.value = 50
    first = by_value.get(1)
    first.value += 100
    total, here = 0, nodes[0]
    for _ in range(2 * n):
        total = total * 3 % 1009 + here.value
        here = here.next
    return total


def cache(room, keys):
    lru, total = LRU(room), 0
    for key in keys:
        value = lru.get(key)
        total = total * 2 + value
        if value == -1:
            lru.put(key, key * key)
    return total


def lists_in_records(parents):
    nodes = [Tree(1)]
    for i, parent in enumerate(parents):
        node = Tree(i + 2)
        nodes[parent].children.append(node)
        nodes.append(node)
    return nodes[0].total(), len(nodes[0].children)


def methods_of_several_classes(n):
    shapes = []
    for i in range(n):
        if i % 2:
            shapes.append(Disc(i, n))
        else:
            shapes.append(Square(i))
    return sum(shape.area() for shape in shapes), sum(shape.sides for shape in shapes)


def members_of_an_enumeration(n):
    reds, node = 0, None
    for i in range(n):
        node = Node(Colour.RED if i % 3 else Colour.BLACK, node)
    while node is not None:
        reds = reds * 2 + (node.value == Colour.RED)
        node = node.next
    return reds


def one_object_at_several_places(n):
    a, b, c = Node(1), Node(2), Node(3)
    row = [a] * n
    row[0].value = 10
    rows = [[b] * 2 for _ in range(n)]
    rows[0][0].value = 20
    by_number = dict.fromkeys([k for k in range(n)], c)
    by_number[0].value = 30
    return a.value + row[-1].value, b.value + rows[-1][1].value, c.value + by_number[n - 1].value


def counted_in(n):
    box = Tree(n, [n, 3, n])
    return n in box, (n in box) + 1, 7 not in box


@pytest.mark.parametrize(
    ("function", "examples"),
    [
        (names_of_one_object, ((3,), (4,))),
        (one_object_at_several_places, ((3,), (1,))),
        (counted_in, ((3,), (7,))),
        (objects_in_lists_and_dicts, ((3,), (2,), (5,))),
        (cache, ((2, [1, 2, 1, 3, 2]), (1, [5, 5, 6]), (3, [1, 2, 3, 4, 1]))),
        (lists_in_records, (([0, 0, 1],), ([0, 1, 2],), ([0],))),
        (methods_of_several_classes, ((3,), (0,), (4,))),
        (members_of_an_enumeration, ((3,), (0,), (7,))),
    ],
)
def test_as_in_python(function, examples):
    assert not Row("made", function, examples, True, 1e-4, "").differences()


@pcbatch.batch
def ring(n):
    first = Node(0)
    last = first
    for i in range(1, n):
        last.next = Node(i)
        last = last.next
    last.next = first
    return first, n


@pcbatch.batch
def around(node, n):
    total = 0
    for _ in range(n):
        total = total * 3 + node.value
        node = node.next
    return total


def test_results_are_objects_with_their_sharing_and_cycles():
    rings, sizes = ring(jnp.array([1, 3]))
    one, three = rings.tolist()
    assert one.next is one and type(one) is Node
    assert [three.value, three.next.value, three.next.next.value] == [0, 1, 2]
    assert three.next.next.next is three and rings[1].next.value == 1
    assert rings.counts(Node).tolist() == [1, 3] and rings.columns(Node, "value")[1, :3].tolist() == [0, 1, 2]
    assert len(rings) == 2 and sizes.tolist() == [1, 3]


def test_results_are_arguments_and_pytrees():
    steps = jnp.array([2, 5])
    inside = jax.jit(lambda n: ring(n)[0])(jnp.array([2, 3]))
    assert inside[1].next.next.value == 2
    assert around(ring(jnp.array([1, 3]))[0], steps).tolist() == [0, ((1 * 3 + 2) * 3 + 0) * 3 + 1]
    assert around(inside, steps).tolist() == [1, 46]


class Cell(NamedTuple):
    head: int
    tail: Any


def test_results_in_lists_and_of_packed_objects():
    @pcbatch.batch
    def cells(tree, n):
        found, xs = [], None
        for i in range(n):
            xs = Cell(i, xs)
            found.append(xs)
        return found, tree

    trees = pcbatch.pack([Cell(7, None), Cell(8, Cell(9, None))])
    found, same = cells(trees, jnp.array([2, 0]))
    lists = found.tolist()
    assert lists == [[Cell(0, None), Cell(1, Cell(0, None))], []]
    assert lists[0][1].tail is lists[0][0]
    assert same.unpack() == [Cell(7, None), Cell(8, Cell(9, None))]


def test_texts_and_tuples_in_results_are_those_of_python():
    def named(n):
        node = None
        for i in range(n):
            node = Node((str(7 * i), tuple([k for k in range(i)])), node)
        return node

    def values(node):
        return [] if node is None else [node.value, *values(node.next)]

    assert values(pcbatch.batch(named)(jnp.array([3]))[0]) == values(named(3))
    in_dicts = pcbatch.batch(lambda n: {k: tuple([j for j in range(k)]) for k in range(n)})(jnp.array([3]))
    assert in_dicts.tolist() == [{0: (), 1: (0,), 2: (0, 1)}]


def test_the_objects_of_a_lane_that_failed_are_not_there():
    @pcbatch.batch
    def chain(n):
        assert n > 0
        node = None
        for i in range(n):
            node = Node(i, node)
        return node

    made = chain.run(jnp.array([1, 0])).value
    assert made[0].value == 0
    with pytest.raises(ValueError, match="lane 1 has failed"):
        made[1]
    with pytest.raises(IndexError):
        made[2]


def takes_a_list_of_a_record(n):
    tree = Tree(n)
    other = tree
    xs = tree.children
    xs.append(other)
    return len(tree.children)


def gives_one_list_to_two_records(n):
    xs = [Tree(n)]
    trees = [Tree(1, xs), Tree(2, xs)]
    trees[0].children.append(trees[1])
    return len(trees[1].children)


def changes_a_list_that_it_stored(n):
    xs = []
    node = Tree(n, xs)
    other = node
    other.key = 3
    xs.append(node)
    return len(node.children) + node.key


def sets_what_init_does_not(n):
    node = Node(n)
    other = node
    other.weight = 3
    return node.weight


@pytest.mark.parametrize(
    "function",
    [
        gives_one_list_to_two_records,
        changes_a_list_that_it_stored,
        sets_what_init_does_not,
    ],
)
def test_what_is_refused(function):
    with pytest.raises(pcbatch.CompileError) as caught:
        pcbatch.batch(function)(np.array([3, 4], np.int32))
    assert caught.value.diagnostics[0].code in ("PCB303", "PCB304", "PCB320", "PCB330")
    assert caught.value.diagnostics[0].helps


def test_a_list_of_a_record_has_a_name():
    found = pcbatch.batch(takes_a_list_of_a_record)(np.array([3, 4], np.int32))
    assert found.tolist() == [1, 1]


class Counted:
    total = 5

    def __init__(self, x):
        self.x = x


class Other(Counted):
    total = 6


class Copied(Counted):
    def __init__(self, x):
        super().__init__(x)
        self.total = self.total


class OtherCopied(Copied):
    total = 6


def test_the_help_for_an_attribute_of_classes_keeps_what_they_have():
    def counted(x, one, other):
        o = one(x) if x % 2 else other(x)
        o.total += x
        return o.total

    lanes = np.array([1, 2], np.int32)
    with pytest.raises(pcbatch.CompileError, match="`self.total = self.total`"):
        pcbatch.batch(lambda x: counted(x, Counted, Other)).trace(lanes)
    made = pcbatch.batch(lambda x: counted(x, Copied, OtherCopied))(lanes)
    assert made.tolist() == [counted(x, Copied, OtherCopied) for x in (1, 2)]
