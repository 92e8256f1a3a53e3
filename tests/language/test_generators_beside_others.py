"""Generators that change what stands beside them in an expression, and several that `zip` asks in turns."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import pcbatch
from tests.strangers.rows import alike, as_plain, lane_of

LANES = (1, 2, 3)


class Countdown:
    def __init__(self, n):
        self.n = n

    def __iter__(self):
        while self.n > 0:
            self.n -= 1
            yield self.n


class Pair:
    def __init__(self, a, b):
        self.a, self.b = a, b

    def __iter__(self):
        yield self.a
        yield self.b

    def __lt__(self, other):
        return self.a < other.a

    def __gt__(self, other):
        return self.a > other.a


def popped(xs):
    while xs:
        yield xs.pop()


def below(d):
    while d.n > 0:
        d.n -= 1
        yield d.n


def down(n):
    while n > 0:
        yield n
        n -= 1


def naturals():
    k = 0
    while True:
        yield k
        k += 1


def fibonacci():
    a, b = 0, 1
    while True:
        yield a
        a, b = b, a + b


def operands(n):
    d, e = Countdown(n + 3), Countdown(n + 2)
    return d.n * 100 + sum(d), (e.n, max(e), e.n)


def displays(n):
    d, e, f = Countdown(n + 2), Countdown(n + 2), Countdown(n + 1)
    return {"a": d.n, "b": max(d), "c": d.n}, f"{e.n} {sum(e)} {e.n}", [f.n, [x for x in f], f.n]


def comparisons(n):
    d, e = Countdown(n + 2), Countdown(n + 2)
    return d.n < sum(d) > d.n, (e.n, e.n in e, e.n), max(d.n, 3)


def lists(n):
    xs, ys = [n, 2, 3], [n, 4, 5]
    return len(xs) * 100 + sum(popped(xs)), ys[0] * 10 + sum(popped(ys)) + len(ys)


def unpacked(n):
    d, e = Countdown(n + 2), Countdown(n + 2)
    a, *rest = d.n, *d
    return a, rest, max(-1, *e)


def variables_around(n):
    k, cell, d = n + 2, [n], Countdown(n + 1)

    def assigns():
        nonlocal k
        while k > 0:
            k -= 1
            yield k

    def stores():
        while cell[0] > 0:
            cell[0] -= 1
            yield cell[0]

    def changes():
        while d.n > 0:
            d.n -= 1
            yield d.n

    return (k, sum(assigns()), k), (cell[0], sum(stores()), cell[0]), (d.n, sum(changes()), d.n)


def arguments(n):
    d = Countdown(n + 2)
    return (lambda a, b: a * 100 + b)(d.n, sum(d))


def some_elements(n):
    d, e = Countdown(n + 2), Countdown(n + 2)
    return [d.n, any(x == 1 for x in d), d.n, all(x > 1 for x in e), e.n]


def largest_of_objects(n):
    a, b = Pair(n, 1), Pair(2, 5)
    return max(a, b).b, list(min(a, b)), max(*a), min(*b, 0), max(b)


def turns(n):
    d, e, f = Countdown(n + 3), Countdown(n + 3), Countdown(n + 3)
    return list(zip(below(d), below(d))), [a * 10 + b for a, b in zip(e, e)], list(zip(f, range(2))), f.n


def turns_in_loops(n):
    d, e, out = Countdown(n + 4), Countdown(n + 3), []
    for a, b in zip(d, d):
        out.append(a * 10 + b)
    for i, (a, b) in enumerate(zip(e, Countdown(2))):
        out.append((a + b) * i)
    return out, e.n


def mapped(n):
    d = Countdown(n + 3)
    return list(map(lambda a, b: a - b, below(d), below(d)))


def without_an_end(n):
    out = []
    for a, b in zip(naturals(), fibonacci()):
        if a > n + 4:
            break
        out.append(a * b)
    return out, [a * b for a, b in zip(fibonacci(), down(n + 3))], sum(a for a, _ in zip(down(n), naturals()))


PROGRAMS = [
    operands, displays, comparisons, lists, unpacked, variables_around, arguments, some_elements, largest_of_objects,
    turns, turns_in_loops, mapped, without_an_end,
]  # fmt: skip


@pytest.mark.parametrize("program", PROGRAMS)
def test_elements_are_made_where_python_makes_them(program: Callable[..., Any]) -> None:
    results = pcbatch.batch(program)(np.array(LANES))
    for k, n in enumerate(LANES):
        assert alike(as_plain(lane_of(results, k)), as_plain(program(n)), 0)


def inner(n):
    k = n

    def g():
        nonlocal k
        while k > 0:
            k -= 1
            yield k

    return list(zip((x for x in g()), g()))


def test_generators_that_no_object_can_stand_for_are_asked_in_turns_by_none() -> None:
    with pytest.raises(pcbatch.CompileError, match="PCB305|PCB304"):
        pcbatch.batch(inner)(np.array(LANES))
