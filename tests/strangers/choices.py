"""Functions that a lane chooses, from tables and by conditions."""

from __future__ import annotations

import math
import operator
from collections.abc import Callable

from tests.strangers.rows import Row, table

ROWS: list[Row] = []
row = table("choices", ROWS)


def add(a, b):
    """Add."""
    return a + b


def sub(a, b):
    """Subtract."""
    return a - b


def div(a, b):
    """Divide, if that is possible."""
    if b == 0:
        return 0
    return a // b


OPS = {0: add, 1: sub, 2: div}
SIGNS = {"+": operator.add, "-": sub, "/": div}
THREE = ((0, 5, 3), (1, 5, 3), (2, 5, 0))


@row(*THREE, (3, 1, 1), (-1, 2, 2))
def from_tables(k, a, b):
    local = [add, sub, div]
    try:
        return OPS[k](a, b), local[k](b=a, a=b), (add, sub, div)[-k](a, OPS.get(k, sub)(a, b))
    except (KeyError, IndexError):
        return -1, len(local), int(k in OPS)


@row(*THREE, (3, 1, 1))
def none_for_what_is_missing(k, a, b):
    found = OPS.get(k)
    if not found:
        return -1
    first = found(a, b)
    return first if found is None else first + found(b, a)


@row((0, 1), (1, 1), (2, 1))
def calls_what_is_missing(k, a):
    found = {0: abs, 1: math.sqrt}.get(k)
    try:
        return found(a) * 1.0
    except TypeError:
        return -7.0


@row(([1, 2, -1, 5, -3],), ([9, 3, -2, 4, -1],))
def postfix(codes):
    signs = ["+", "-", "/"]
    stack = []
    for code in codes:
        if code >= 0:
            stack.append(code)
            continue
        right = stack.pop()
        stack.append(SIGNS[signs[-code - 1]](stack.pop(), right))
    return stack


@row(([0, 1, 1, 2],), ([2, 0],))
def machine(codes):
    stack, steps = [1, 2], 0

    def push(k):
        nonlocal steps
        stack.append(k)
        steps += 1

    def double(k):
        stack[-1] *= 2

    handlers: dict[int, Callable] = {0: push, 1: double, 2: lambda k: stack.pop()}
    for k, code in enumerate(codes):
        handlers[code](k)
    return stack, steps


@row((0, 6), (1, 6), (2, 7))
def by_conditions(k, n):
    def down(i):
        return 0 if i <= 0 else 1 + down(i - 2)

    step = down if k == 0 else lambda i: i * n if i > 3 else k
    if k == 2:
        step = abs
    last = step
    return step(n) + last(-n)


@row(([0, 1, 1],), ([1],))
def in_comprehensions(xs):
    chosen = (add, sub)
    return [chosen[x](k, 2) for k, x in enumerate(xs)], sum(OPS[x](x, 3) for x in xs)


def even(n):
    """Count down by ways that differ for even and odd numbers."""
    return 0 if n <= 0 else 1 + WAYS[n % 2](n - 1)


def odd(n):
    """Count down by ways that differ for even and odd numbers."""
    return 0 if n <= 0 else 10 + WAYS[n % 2](n - 2)


WAYS = {0: even, 1: odd}


@row((7,), (4,))
def back_and_forth(n):
    return WAYS[n % 2](n)


class Square:
    """A shape."""

    def __init__(self, side):
        self.side = side

    def area(self):
        return self.side**2


class Circle(Square):
    """Another one."""

    def area(self):
        return 3 * self.side**2

    def grown(self, how, k):
        return {0: self.area, 1: self.more}[how]() + k

    def more(self):
        if self.side > 2:
            self.side += 1
        return self.side


@row((0, 2), (1, 3))
def classes(k, n):
    return [Square, Circle][k](n).area(), Circle(n).grown(k, 1)


@row((1, 0, 7), (0, 0, 7))
def parts_are_no_functions(k, a, b):
    shape = Circle(a)
    other = Square(b)
    side = shape.side if k else other.side
    if side:
        return 1
    return 0
