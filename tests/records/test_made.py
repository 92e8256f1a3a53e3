"""Records made in lanes: objects that refer to objects of their kind, made while a lane runs."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NamedTuple

import jax
import numpy as np
import pytest

import pcbatch

pytestmark = pytest.mark.share(3)

INTS = np.array([5, 3, 0, 9, 1], np.int32)


class Cell(NamedTuple):
    head: int
    tail: Any


@pcbatch.batch
def build(n):
    xs = None
    for i in range(n):
        xs = Cell(i * i, xs)
    return xs


@pcbatch.batch
def reverse(xs):
    done = None
    while xs is not None:
        done = Cell(xs.head, done)
        xs = xs.tail
    return done


@pcbatch.batch
def add(xs, k):
    if xs is None:
        return None
    return Cell(xs.head + k, add(xs.tail, k))


@pcbatch.batch
def digits(xs):
    total = 0
    while xs is not None:
        total = total * 3 + xs.head
        xs = xs.tail
    return total


@pcbatch.batch
def cons(n):
    xs = build(n)
    return digits(xs), digits(reverse(xs)), digits(add(xs, n)), digits(reverse(add(reverse(xs), 1)))


@dataclass(frozen=True)
class Tree:
    key: int
    left: Any = None
    right: Any = None


@pcbatch.batch
def insert(tree, key):
    if tree is None:
        return Tree(key)
    if key < tree.key:
        return Tree(tree.key, insert(tree.left, key), tree.right)
    if key > tree.key:
        return Tree(tree.key, tree.left, insert(tree.right, key))
    return tree


@pcbatch.batch
def in_order(tree, total):
    if tree is None:
        return total
    total = in_order(tree.left, total)
    return in_order(tree.right, (total * 7 + tree.key) % 10007)


@pcbatch.batch
def search_tree(n):
    tree, old, key = None, None, 5
    for i in range(n):
        key = (key * 37 + i) % 101
        tree = insert(tree, key)
        if i == 2:
            old = tree
    return in_order(tree, 0), in_order(old, 0)


class Num(NamedTuple):
    value: float


class Var(NamedTuple):
    pass


class Add(NamedTuple):
    left: Any
    right: Any


class Mul(NamedTuple):
    left: Any
    right: Any


class Neg(NamedTuple):
    of: Any


@pcbatch.batch
def derivative(e):
    match e:
        case Num():
            return Num(0.0)
        case Var():
            return Num(1.0)
        case Add(a, b):
            return Add(derivative(a), derivative(b))
        case Mul(a, b):
            return Add(Mul(derivative(a), b), Mul(a, derivative(b)))
        case Neg(a):
            return Neg(derivative(a))


@pcbatch.batch
def value(e, x):
    match e:
        case Num(v):
            return v
        case Var():
            return x
        case Add(a, b):
            return value(a, x) + value(b, x)
        case Mul(a, b):
            return value(a, x) * value(b, x)
        case Neg(a):
            return -value(a, x)
        case _:
            return 0.0


@pcbatch.batch
def derivatives(n, x):
    e = Var()
    for i in range(n):
        e = Add(Mul(e, Var()), Neg(Num(0.5 * i)))
    return value(e, x), value(derivative(e), x), value(derivative(derivative(e)), x)


class Number(NamedTuple):
    value: int


class Binary(NamedTuple):
    op: int
    left: Any
    right: Any


PLUS, TIMES, OPEN, CLOSE = -1, -2, -3, -4


@pcbatch.batch
def parse_sum(tokens, at):
    node, at = parse_product(tokens, at)
    while tokens[at] == PLUS:
        other, at = parse_product(tokens, at + 1)
        node = Binary(PLUS, node, other)
    return node, at


@pcbatch.batch
def parse_product(tokens, at):
    node, at = parse_atom(tokens, at)
    while tokens[at] == TIMES:
        other, at = parse_atom(tokens, at + 1)
        node = Binary(TIMES, node, other)
    return node, at


@pcbatch.batch
def parse_atom(tokens, at):
    if tokens[at] == OPEN:
        node, at = parse_sum(tokens, at + 1)
        return node, at + 1
    return Number(tokens[at]), at + 1


@pcbatch.batch
def evaluate(node):
    if isinstance(node, Number):
        return node.value
    a, b = evaluate(node.left), evaluate(node.right)
    return a + b if node.op == PLUS else a * b


@pcbatch.batch
def calculate(tokens):
    node, _ = parse_sum(tokens, 0)
    return evaluate(node)


def check(fn, *args, **options):
    """Compare with the plain function, for all lanes and for the lanes in another order."""
    order = np.random.default_rng(0).permutation(len(args[0]))
    wanted = [fn.plain(*(a.item() if a.ndim == 0 else a for a in lane)) for lane in zip(*args, strict=True)]
    for lanes in (np.arange(len(order)), order):
        got = fn(*(a[lanes] for a in args))
        for k, part in enumerate(got if isinstance(got, tuple) else (got,)):
            plain = [(one if isinstance(one, tuple) else (one,))[k] for one in wanted]
            np.testing.assert_allclose(np.asarray(part), np.array(plain)[lanes], rtol=1e-5)


def test_lists_of_cells():
    check(cons, INTS)


def test_more_records_than_there_is_room_for():
    @pcbatch.batch
    def last(n):
        xs = None
        for i in range(n):
            xs = Cell(i, xs)
        first = -1
        while xs is not None:
            first, xs = first + xs.head, xs.tail
        return first

    check(last, np.array([2, 300, 40], np.int32))


def test_insertion_into_a_persistent_search_tree():
    check(search_tree, np.array([0, 4, 12, 7], np.int32))


@pytest.mark.full_only
def test_derivatives_of_expressions():
    check(derivatives, np.array([3, 1, 0, 2], np.int32), np.array([0.5, 2.0, 1.0, -1.0], np.float32))


def test_a_parser():
    texts = [[2, PLUS, 3, TIMES, 4], [OPEN, 2, PLUS, 3, CLOSE, TIMES, 4], [7], [1, TIMES, OPEN, 5, PLUS, 2, CLOSE]]
    rows = np.array([[*text, *[0] * (9 - len(text))] for text in texts], np.int32)
    check(calculate, rows)


def test_identity_stacks_and_arguments():
    @pcbatch.batch
    def walk(chain, n):
        first = None
        for i in range(n):
            chain = Cell(i, chain)
            if i == 1:
                first = chain
        stack = [chain]
        total, same = 0, 0
        while stack:
            here = stack.pop()
            if here is not None:
                total = (total * 3 + here.head) % 1009
                same = same + 1 if here is first else same
                stack.append(here.tail)
        return total, same

    one, other = np.array([1, 2, 3], np.int32), np.array([5, 6, 7], np.int32)
    n = np.array([4, 0, 2], np.int32)
    got = walk(Cell(one, Cell(other, None)), n)
    wanted = [walk.plain(Cell(int(a), Cell(int(b), None)), int(k)) for a, b, k in zip(one, other, n, strict=True)]
    assert [tuple(map(int, lane)) for lane in zip(*got, strict=True)] == wanted


def test_gradients_through_records():
    @pcbatch.batch
    def squares(n, x):
        xs = None
        for i in range(n):
            xs = Cell(x * i, xs)
        total = 0.0
        while xs is not None:
            total = total + xs.head * xs.head
            xs = xs.tail
        return total

    x = np.array([0.5, 2.0, 1.0], np.float32)
    n = np.array([3, 0, 5], np.int32)
    got = jax.grad(lambda x: squares(n, x).sum())(x)
    np.testing.assert_allclose(got, [2 * v * sum(i * i for i in range(k)) for v, k in zip(x, n, strict=True)])


@dataclass
class Item:
    value: Any
    next: Any = None


END = Item(0)


def with_existing(n):
    xs = END
    for i in range(n):
        xs = Item(i, Item(i, xs))
    return xs.value


def compared_with_existing(n):
    xs, ends = None, 0
    for i in range(n):
        xs = Item(i, xs)
    if xs is END:
        ends = 1
    return ends


def with_text(n):
    xs = None
    for i in range(n):
        xs = Item(i, xs)
    print(xs)
    return n


def with_equality(n):
    xs, ys = None, None
    for i in range(n):
        xs, ys = Item(i, xs), Item(i, ys)
    return xs == ys


@pytest.mark.parametrize(
    ("fn", "message"),
    [
        (with_existing, "existed before the call"),
        (compared_with_existing, "existed before the call"),
        (with_text, "the text of a record that is made in a lane"),
        (with_equality, "`==` of records"),
    ],
)
def test_what_is_refused(fn, message):
    with pytest.raises(pcbatch.CompileError, match=message):
        pcbatch.batch(fn)(INTS)
