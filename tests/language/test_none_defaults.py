"""Parameters that are None where a function makes a new object, which it changes in place: `memo=None`, `path=None`."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import pcbatch

pytestmark = pytest.mark.promotion("standard")

STEPS = {0: [1, 2], 1: [3], 2: [3, 4], 3: [5], 4: [], 5: [0]}


def nested(n):
    def fib(k, memo=None):
        if memo is None:
            memo = {}
        if k in memo:
            return memo[k]
        if k < 2:
            return k
        memo[k] = fib(k - 1, memo) + fib(k - 2, memo)
        return memo[k]

    return fib(n)


def of_itself(n, memo=None):
    if memo is None:
        memo = {}
    if n in memo:
        return memo[n]
    if n < 2:
        return n
    memo[n] = of_itself(n - 1, memo) + of_itself(n - 2, memo)
    return memo[n]


def visit(v, seen=None):
    if seen is None:
        seen = set()
    seen.add(v)
    for w in STEPS[v]:
        if w not in seen:
            visit(w, seen)
    return seen


def reached(n):
    return len(visit(n % 6)) * 10 + len(visit(4))


def several(n):
    """Two parameters, one of which is only handed on."""

    def go(k, left, path=None, out=None):
        path = path or []
        if out is None:
            out = []
        if left == 0:
            out.append(len(path))
        elif k <= left:
            go(k + 1, left - k, path + [k], out)
            go(k + 1, left, path, out)
        return out

    found = go(1, n)
    return sum(found) * 100 + len(found)


def early(n, *, log=None):
    """A parameter by name alone, behind a simple case."""
    if n == 1:
        return 0
    log = log if log is not None else []
    log.append(n)
    return len(log) if len(log) > 30 else 1 + early(n // 2 if n % 2 == 0 else 3 * n + 1, log=log)


def add(x, acc=None):
    if not acc:
        acc = []
    acc.append(x)
    return acc


def empty_counts_as_none(n):
    first = add(n)
    second = add(n + 1, first)
    empty = []
    third = add(5, empty)
    return len(first) * 1000 + len(second) * 100 + len(empty) * 10 + len(third)


def none_in_some_lanes(n):
    given = None
    if n > 3:
        given = [5, 6]
    found = add(n, given)
    return len(found) * 10 + (0 if given is None else len(given))


def given_and_not(n):
    def count(k, memo=None):
        if memo is None:
            memo = {0: 1}
        if k < 0:
            return 0
        if k not in memo:
            memo[k] = count(k - 1, memo) + count(k - 2, memo)
        return memo[k]

    memo = {0: 2}
    return count(n) * 1000 + count(n, memo) + len(memo)


class Walker:
    def walk(self, k, trail=None):
        if trail is None:
            trail = []
        trail.append(k)
        if k > 1:
            self.walk(k // 2 if k % 2 == 0 else 3 * k + 1, trail)
        return trail


def method(n):
    trail = Walker().walk(n)
    return len(trail) * 100 + trail[len(trail) // 2]


def extend(n, xs=None):
    if xs is not None:
        for i in range(n):
            xs.append(i * n)
    return n + 1


def asked_and_changed(n):
    """The object is changed where it is not None, and not made where it is."""
    xs = [1]
    return extend(n, xs) + extend(n) + sum(xs)


class Counter:
    def __init__(self):
        self.calls = 0

    @property
    def tick(self):
        self.calls += 1
        return self.calls

    def log(self, n, out=None):
        self.calls += 10
        start = self.tick
        if out is None:
            out = []
        out.append(start + n)
        return out


def effects_before(n):
    """What a function does before it makes the object happens once."""
    counter, given = Counter(), None
    if n > 3:
        given = [1]
    found = counter.log(n, given)
    return sum(found) * 1000 + counter.calls * 10 + len(counter.log(n))


PROGRAMS = [
    effects_before,
    nested,
    of_itself,
    reached,
    several,
    early,
    empty_counts_as_none,
    none_in_some_lanes,
    given_and_not,
    method,
    asked_and_changed,
]


@pytest.mark.parametrize("fn", PROGRAMS, ids=lambda fn: fn.__name__)
def test_the_results_are_those_of_python(fn: Callable[[int], Any]) -> None:
    values = np.array([1, 2, 3, 5, 7])
    assert pcbatch.batch(fn)(values).tolist() == [fn(n) for n in values.tolist()]


def extended(n, text):
    for _ in text:
        text += "1"
    return len(text) + n


def text_of_the_caller(n):
    text = "12" if n < 5 else "9"
    length = extended(n, text)
    return length * 100 + len(text)


def joined(xs, more):
    xs += more
    return len(xs) if len(xs) > 2 else 0


def of_two_types(n):
    numbers, text = [1], "x" * n
    return joined(numbers, [n]) + joined(text, "yz") + len(numbers) * 10 + len(text)


def test_a_text_that_a_helper_extends_stays_that_of_the_caller() -> None:
    """A loop over the text, or a call with a list, took the new text for a change of the caller's object."""
    values = np.array([1, 3, 7])
    assert pcbatch.batch(text_of_the_caller)(values).tolist() == [text_of_the_caller(n) for n in values.tolist()]
    with pytest.raises(pcbatch.CompileError, match="PCB330"):
        pcbatch.batch(of_two_types)(values)
