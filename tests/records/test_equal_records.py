"""`==`, `!=`, `in`, texts and methods of records of several classes that lead to one another."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np
import pytest

import pcbatch
from tests.strangers.rows import as_plain, lane_of

pytestmark = pytest.mark.promotion("standard")
NUMBERS = (0, 1, 2, 3, 5, 6, 7)


@dataclass
class Tree:
    v: int
    l: Any = None
    r: Any = None


def tree_of(lo, hi, bad):
    if lo >= hi:
        return None
    m = (lo + hi) // 2
    return Tree(m if m != bad else -1, tree_of(lo, m, bad), tree_of(m + 1, hi, bad))


def trees(n):
    a = tree_of(0, n, -1)
    b = tree_of(0, n, -1)
    c = tree_of(0, n, 3)
    return (a == b, a == c, a != c, a is b, a == (None if n else b))


def in_a_list(n):
    xs = [tree_of(0, k, -1) for k in range(n)]
    t = tree_of(0, 3, -1)
    return (t in xs, xs.count(t), xs.index(t) if t in xs else -1)


@dataclass(frozen=True)
class Num:
    v: int


@dataclass(frozen=True)
class Var:
    name: str


@dataclass(frozen=True)
class Sum:
    l: object
    r: object


@dataclass(frozen=True)
class Product:
    l: object
    r: object


def expression(k):
    if k <= 1:
        return Num(k)
    if k % 5 == 0:
        return Var("xyz"[k % 3])
    if k % 2:
        return Sum(expression(k // 2), expression(k - 1 - k // 2))
    return Product(expression(k // 2), expression(k // 3))


def simplified(e):
    if isinstance(e, Sum):
        l, r = (simplified(e.l), simplified(e.r))
        if l == Num(0):
            return r
        if r == Num(0):
            return l
        if l == r:
            return Product(Num(2), l)
        return Sum(l, r)
    if isinstance(e, Product):
        l, r = (simplified(e.l), simplified(e.r))
        if l == Num(0) or r == Num(0):
            return Num(0)
        if l == Num(1):
            return r
        if r == Num(1):
            return l
        return Product(l, r)
    return e


def shown(e):
    if isinstance(e, Num):
        return str(e.v)
    if isinstance(e, Var):
        return e.name
    if isinstance(e, Sum):
        return "(" + shown(e.l) + "+" + shown(e.r) + ")"
    return "(" + shown(e.l) + "*" + shown(e.r) + ")"


def simplify(n):
    return shown(simplified(expression(n)))


@dataclass
class Branch:
    v: float
    kids: list
    tag: str = "a"


def branch(n):
    t = Branch(n * 0.5, [])
    for k in range(n):
        t.kids.append(branch(k))
    return t


def lists_of_records(n):
    a = branch(n % 4)
    b = branch(n % 4)
    if n % 2:
        b.kids.append(branch(0))
    c = branch(n % 4)
    if c.kids:
        c.kids[-1].tag = "b"
    return (a == b, b == c, a == c)


@dataclass(eq=False)
class Plain:
    v: int
    nxt: Any = None


def by_identity(n):
    a = None
    for k in range(n):
        a = Plain(k, a)
    b = Plain(n - 1, a.nxt if a else None)
    return (a == b, a == a, a != b, b in [a, b])


@dataclass
class Cell:
    v: int
    nxt: Any = None


def cycles(n):
    a = Cell(1)
    b = Cell(1)
    a.nxt = b
    b.nxt = a if n < 3 else None
    c = Cell(1, Cell(1))
    return (a == b, a == c)


class Own:
    def __init__(self, v, l=None):
        self.v = v
        self.l = l

    def __eq__(self, o):
        return isinstance(o, Own) and self.v == o.v and (self.l == o.l)


def by_a_method(n):
    a = None
    b = None
    for k in range(n):
        a = Own(k, a)
        b = Own(k if k != 2 else 9, b)
    return (a == b, a != b, a == (None if n else b), a == a)


class Pair(NamedTuple):
    v: int
    nxt: object


def named_tuples(n):
    a = None
    b = None
    for k in range(n):
        a = Pair(k, a)
        b = Pair(k if k != 2 else 9, b)
    return (a == b, a != b)


@dataclass
class Link:
    v: int
    other: object = field(default=None, compare=False)


def left_out(n):
    a = Link(1)
    for k in range(n):
        a = Link(k % 2, a)
    return (a == Link(0), a == Link(1))


class Constant:
    symbol = ""

    def __init__(self, value):
        self.value = value

    def __str__(self):
        return str(self.value)

    def size(self):
        count = 0
        while count < self.value:
            count += 1
        return count


class Operation:
    symbol = "?"

    def __init__(self, value, right):
        self.value, self.right = value, right

    def __str__(self):
        return f"({self.value}{self.symbol}{self.right})"

    def size(self):
        return self.value.size() + self.right.size()

    def __eq__(self, other):
        return type(self) is type(other) and self.value == other.value and self.right == other.right


class Plus(Operation):
    symbol = "+"


class Times(Operation):
    symbol = "*"


def operation(n):
    if n < 2:
        return Constant(n)
    return Plus(operation(n // 2), operation(n - n // 2)) if n % 2 else Times(operation(n // 2), Constant(n))


def texts_and_methods(n):
    """A field has other kinds in other classes: each method reads it of its own."""
    made = operation(n)
    return str(made), made.size(), made.symbol


def types_of_both(n):
    a, b = operation(n), operation(n + n % 3)
    return type(a) is type(b), type(a) is not type(b)


PROGRAMS: tuple[Callable[..., Any], ...] = (
    trees, in_a_list, simplify, lists_of_records, by_identity, cycles, by_a_method, named_tuples, left_out,
    texts_and_methods, types_of_both,
)  # fmt: skip


@pytest.mark.parametrize("function", PROGRAMS, ids=lambda function: function.__name__)
def test_as_plain_python(function: Callable[..., Any]) -> None:
    run = pcbatch.batch(function).run(np.array(NUMBERS))
    failed = (np.asarray(run.status) != 0).tolist()
    for lane, n in enumerate(NUMBERS):
        try:
            wanted = function(n)
        except RecursionError:
            assert failed[lane], n
            continue
        assert not failed[lane], n
        assert str(as_plain(lane_of(run.value, lane))) == str(as_plain(wanted)), n
