"""Packed objects that a program changes: each lane has a copy, equal in structure to what plain Python leaves."""

from __future__ import annotations

import copy
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from enum import Enum
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import pcbatch

pytestmark = pytest.mark.promotion("standard")


class Link:
    def __init__(self, val=0, next=None):
        self.val = val
        self.next = next


class Tree:
    def __init__(self, key, left=None, right=None):
        self.key, self.left, self.right = key, left, right


@dataclass
class Element:
    key: int
    parent: Any = None
    rank: int = 0


@dataclass
class Vertex:
    name: int
    ways: list = field(default_factory=list)
    seen: bool = False


class Colour(Enum):
    RED = 1
    BLACK = 2


@dataclass
class Leaf:
    """One with a field of every kind."""

    colour: Colour
    weight: Any
    point: tuple
    label: Any
    numbers: Any
    others: Any
    tags: tuple
    other: Any = None


class Pair(NamedTuple):
    key: int
    left: Any
    right: Any


def links(values):
    head = None
    for value in reversed(values):
        head = Link(value, head)
    return head


def insert(tree, key):
    if tree is None:
        return Tree(key)
    if key < tree.key:
        tree.left = insert(tree.left, key)
    else:
        tree.right = insert(tree.right, key)
    return tree


def reverse(head):
    before = None
    while head:
        head.next, before, head = before, head, head.next
    return before


def without(head, value):
    dummy = Link(0, head)
    here = dummy
    while here.next:
        if here.next.val == value:
            here.next = here.next.next
        else:
            here = here.next
    return dummy.next


def merged(a, b):
    dummy = tail = Link()
    while a and b:
        if a.val <= b.val:
            tail.next, a = a, a.next
        else:
            tail.next, b = b, b.next
        tail = tail.next
    tail.next = a or b
    return dummy.next


def ring(head):
    last = head
    while last.next:
        last = last.next
    last.next = head
    return head


def delete(tree, key):
    if tree is None:
        return None
    if key < tree.key:
        tree.left = delete(tree.left, key)
    elif key > tree.key:
        tree.right = delete(tree.right, key)
    elif tree.left is None or tree.right is None:
        return tree.left or tree.right
    else:
        least = tree.right
        while least.left:
            least = least.left
        tree.key = least.key
        tree.right = delete(tree.right, least.key)
    return tree


def find(x):
    while x.parent is not x:
        x.parent = x.parent.parent
        x = x.parent
    return x


def union(a, b):
    a, b = find(a), find(b)
    if a is b:
        return a
    if a.rank < b.rank:
        a, b = b, a
    b.parent = a
    a.rank += a.rank == b.rank
    return a


def joined(vertex, k):
    new = Vertex(k)
    vertex.ways.append(new)
    new.ways.append(vertex)
    vertex.seen = True
    return vertex


def every_kind(leaf, k):
    leaf.colour = Colour.RED if leaf.colour is Colour.BLACK else Colour.BLACK
    leaf.weight += k
    leaf.label = None if leaf.label else k
    if leaf.others is not None:
        leaf.others.append(leaf)
    leaf.other.other = leaf
    return leaf


def pair_with(tree, key):
    if tree is None:
        return Pair(key, None, None)
    if key < tree.key:
        return tree._replace(left=pair_with(tree.left, key))
    return tree._replace(right=pair_with(tree.right, key))


DRAW = np.random.default_rng(3)
LISTS = [links(DRAW.integers(0, 4, size).tolist()) for size in (1, 0, 5, 9)]
SORTED = [links(sorted(DRAW.integers(0, 9, size).tolist())) for size in (2, 3, 0, 4)]
OTHERS = [links(sorted(DRAW.integers(0, 9, size).tolist())) for size in (0, 4, 1, 2)]
TREES = [None, Tree(3), *(None, None)]
for lane, keys in ((2, [4, 1, 6, 0, 2, 5, 3]), (3, [2, 3, 1])):
    for key in keys:
        TREES[lane] = insert(TREES[lane], key)
KEYS = [0, 3, 4, 2]
PAIRS = [Pair(2, Pair(1, None, None), None), Pair(1, None, None), None, Pair(5, None, None)]
NIL = Leaf(Colour.BLACK, 0.5, (0, 0.5), None, np.zeros(2, np.float32), None, ())


def elements(size):
    made = [Element(k) for k in range(size)]
    for k, one in enumerate(made):
        one.parent = made[max(0, k - 1)]
    return made


def vertices(size):
    made = [Vertex(k) for k in range(size)]
    for k in range(2 * size):
        made[k % size].ways.append(made[k * k % size])
    return made[0]


def leaf(k):
    others = [NIL] * k if k % 2 else None
    return Leaf(Colour.RED, k * 0.5, (k, k / 2), k or None, np.full(2, k, np.float32), others, tuple(range(k)), NIL)


SETS = [elements(size) for size in (2, 3, 5, 4)]


def structure(value, seen=None):
    """What an object leads to, with numbers for the objects in the order in which they are met."""
    seen = {} if seen is None else seen
    match value:
        case list() | tuple():
            return [structure(part, seen) for part in value]
        case Enum() | None:
            return value
        case _ if hasattr(value, "__dict__"):
            if id(value) in seen:
                return seen[id(value)]
            seen[id(value)] = len(seen)
            return [type(value).__name__, *(structure(part, seen) for _, part in sorted(vars(value).items()))]
    return np.asarray(value).tolist()


def agree(f: Callable[..., Any], *columns: Sequence[Any], packed: Sequence[Any] | None = None) -> None:
    """Compare the objects of every lane with those of plain Python; `packed` are the arguments, if given."""
    args = packed or [jnp.array(c) if isinstance(c[0], int) else pcbatch.pack(c) for c in columns]
    got = pcbatch.batch(f)(*args).tolist()
    want = [f(*copy.deepcopy(example)) for example in zip(*columns, strict=True)]
    assert structure(got) == structure(want)


CASES: list[tuple[Callable[..., Any], ...] | tuple[Any, ...]] = [
    (reverse, LISTS),
    (without, LISTS, KEYS),
    (merged, SORTED, OTHERS),
    (ring, [links(range(size)) for size in (1, 4, 2)]),
    (delete, TREES, KEYS),
    (insert, TREES, KEYS),
    (find, [made[-1] for made in SETS]),
    (joined, [vertices(size) for size in (1, 4, 2, 5)], KEYS),
    (every_kind, [leaf(k) for k in range(4)], KEYS),
    (pair_with, PAIRS, KEYS),
]


@pytest.mark.share(3)
@pytest.mark.parametrize("case", CASES, ids=lambda case: case[0].__name__)
def test_objects_of_each_lane(case: Any) -> None:
    agree(*case)


def test_arguments_that_share_objects() -> None:
    lasts, firsts = [made[-1] for made in SETS], [made[1] for made in SETS]
    both = pcbatch.pack([*lasts, *firsts])
    agree(union, lasts, firsts, packed=(both[:4], both[4:]))


def test_parts_of_one_argument() -> None:
    def chained(pair):
        pair["b"].next = pair["a"]
        return pair["b"].val * 10 + pair["b"].next.val

    pairs = {"b": pcbatch.pack([Link(1), Link(2)]), "a": pcbatch.pack([Link(3), Link(4, Link(5))])}
    assert pcbatch.batch(chained)(pairs).tolist() == [13, 24]


def test_objects_with_which_all_lanes_begin() -> None:
    def moved(roots, head):
        head.val += 100
        return [root.val for root in roots]

    roots = pcbatch.pack([links([1, 2]), links([5])])
    got = pcbatch.batch(moved, in_axes=(None, 0))(roots, roots[np.array([0, 1, 1])])
    assert np.array(got).T.tolist() == [[101, 5], [1, 105], [1, 105]]


def test_objects_that_all_lanes_share() -> None:
    def counted(root, k):
        root.val += k
        root.next = root
        return root.next.next.val

    f = pcbatch.batch(counted, in_axes=(None, 0))
    assert f(pcbatch.pack([Link(1)])[0], jnp.arange(3)).tolist() == [1, 2, 3]


def test_only_what_changes_is_copied() -> None:
    def both(head, other):
        head.val += other.val
        return head, other

    made, packed = pcbatch.batch(both)(pcbatch.pack([Link(1), Link(2)]), pcbatch.pack([Link(3), Link(4)]))
    assert isinstance(made, pcbatch.Made) and isinstance(packed, pcbatch.Packed)
    assert [one.val for one in made] == [4, 6]


def test_map_and_compiled_calls() -> None:
    def first(head):
        return reverse(head).val

    packed = pcbatch.pack([links([1, 2]), links([5]), links([3, 4, 6])])
    f = pcbatch.batch(first)
    assert f.map(packed, lanes=2).value.tolist() == [2, 5, 6]
    assert f.lower(packed).compile()(packed).tolist() == [2, 5, 6]


def test_refused_where_objects_are_not_known() -> None:
    with pytest.raises(pcbatch.CompileError, match="inside a transformation of JAX"):
        jax.jit(pcbatch.batch(reverse))(pcbatch.pack([links([1])]))


class Lazy:
    def __init__(self):
        self.children, self.twin = None, None


def lists_made_when_needed(n):
    a, b = Lazy(), Lazy()
    a.twin, b.twin = b, a
    for k in range(n):
        one = a if k % 2 else b
        if one.children is None:
            one.children = []
        one.children.append(k)
        one.children[0] += 1
    return [sum(one.children) if one.children else -1 for one in (a, b)]


def test_lists_in_fields_that_may_be_none() -> None:
    got = pcbatch.batch(lists_made_when_needed)(jnp.arange(5))
    assert np.array(got).T.tolist() == [lists_made_when_needed(k) for k in range(5)]


def test_a_second_name_of_a_list_that_may_be_none() -> None:
    def aliased(n):
        a, b = Lazy(), Lazy()
        a.twin, b.twin = b, a
        one = a if n else b
        if n > 1:
            one.children = [n]
        children = one.children
        if children is not None:
            children.append(n)
        return 0 if one.children is None else len(one.children)

    assert pcbatch.batch(aliased)(jnp.arange(4)).tolist() == [aliased(k) for k in range(4)]


def changed_and_compared(a: Any, b: Any) -> Any:
    a.val += 10
    b.val *= 2
    return a.val, b.val, a is b, a.next is b


def changed_beside_one_that_is_read(a: Any, b: Any) -> Any:
    a.val += 10
    return a.val, b.val


@pytest.mark.parametrize("f", [changed_and_compared, changed_beside_one_that_is_read])
def test_objects_that_arguments_packed_apart_share(f: Any) -> None:
    x = Link(1)
    y = Link(2, x)
    left, right = [x, y, x], [x, x, y]
    with pytest.raises(pcbatch.UsageError, match=r"PCB320.*packed apart"):
        pcbatch.batch(f)(pcbatch.pack(left), pcbatch.pack(right))
    copied = jax.tree.map(jnp.copy, pcbatch.pack(right))  # what it was made of is not known
    with pytest.raises(pcbatch.UsageError, match=r"PCB320.*packed apart"):
        pcbatch.batch(f)(pcbatch.pack(left), copied)
    packed = pcbatch.pack([*left, *right])
    found = pcbatch.batch(f)(packed[:3], packed[3:])
    expected = [f(*copy.deepcopy(pair)) for pair in zip(left, right, strict=True)]
    assert list(zip(*(part.tolist() for part in found), strict=True)) == expected


def test_arguments_packed_apart_that_share_no_object() -> None:
    left, right = pcbatch.pack([Link(1), Link(2)]), pcbatch.pack([Link(3), Link(4)])
    found = pcbatch.batch(changed_and_compared)(left, right)
    assert [part.tolist() for part in found] == [[11, 12], [6, 8], [False, False], [False, False]]
