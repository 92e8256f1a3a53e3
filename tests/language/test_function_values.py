"""Functions that are values of a lane: chosen by it, kept in attributes, lists and tuples, and called."""

from __future__ import annotations

import functools
import math
import operator
from collections.abc import Callable
from typing import Any

import pytest

import pcbatch
from tests.strangers.rows import alike, argument, as_plain, lane_of


def curve(kind, a):
    if kind == "cube":
        return lambda x: x * x * x - a
    if kind == "sine":

        def sine(x):
            return math.sin(x) * a

        return sine
    return math.fabs


def halved(f, low, high):
    for _ in range(20):
        middle = (low + high) / 2
        if f(middle) < 0.5:
            low = middle
        else:
            high = middle
    return low


def returned_by_a_branch(kind, a):
    return round(halved(curve(kind, a), 0.0, 2.0), 3)


class Machine:
    def __init__(self, text):
        self.text, self.stack, self.at = text, [], 0
        self.ops = {
            "+": self.add,
            "~": lambda: self.stack.append(-self.stack.pop()),
            "!": lambda: setattr(self, "at", self.at + 1),
        }

    def add(self):
        right = self.stack.pop()
        self.stack.append(self.stack.pop() + right)

    def run(self):
        while self.at < len(self.text):
            handler = self.ops.get(self.text[self.at])
            self.at += 1
            if handler is None:
                self.stack.append(int(self.text[self.at - 1]))
            else:
                handler()
        return self.stack


def a_table_of_methods_in_an_attribute(text):
    return Machine(text).run()


class Event:
    def __init__(self, time, action):
        self.time, self.action = time, action


class Shop:
    def __init__(self, gap):
        self.gap, self.now, self.waiting, self.served, self.events = gap, 0, 0, 0, []

    def later(self, delay, action):
        self.events.append(Event(self.now + delay, action))

    def arrive(self):
        self.waiting += 1
        self.later(self.gap, self.arrive)
        if self.waiting == 1:
            self.later(7, self.leave)

    def leave(self):
        self.waiting -= 1
        self.served += 1
        if self.waiting > 0:
            self.later(7, self.leave)

    def run(self, end):
        self.later(0, self.arrive)
        while self.events[0].time <= end:
            event = self.events.pop(0)
            self.now = event.time
            event.action()
            self.events.sort(key=lambda one: one.time)
        return self.served, self.waiting


def bound_methods_in_records(gap, end):
    return Shop(gap).run(end)


def scale(k, x):
    return k * x


def in_a_list(codes, x):
    steps = []
    for c in codes:
        if c == 0:
            steps.append(functools.partial(scale, 3))
        elif c == 1:
            steps.append(operator.neg)
        else:
            steps.append(lambda v, c=c: v - c)
    for step in steps:
        x = step(x)
    return x


def made_in_a_loop(n, x):
    found = []
    for i in range(n):
        found.append(lambda y: y * 10 + i)
    return [f(x) for f in found]


def counter(start):
    count = start

    def step(by=1):
        nonlocal count
        count += by
        return count

    return step


def nonlocal_variables(a, b):
    f, g = counter(a), counter(b)
    h = f if a > b else g
    h()
    h(by=5)
    return f(), g()


def assigned_afterwards(n):
    k = 1
    f = (lambda x: x + k) if n > 2 else (lambda x: x - k)
    k = n
    return f(10)


def a_list_that_they_change(n):
    log = []
    jobs = []
    for i in range(n):
        jobs.append(lambda x, i=i: log.append(x * 10 + i))
    jobs.append(lambda x: log.pop())
    for job in jobs:
        job(n)
    log.append(7)
    return log, len(log)


def chosen(k):
    if k == 0:
        return None
    return (lambda x: x + 1) if k == 1 else (lambda x: x * 2)


def none_is_no_function(k, x):
    f = chosen(k)
    called = -1 if f is None else f(x)
    try:
        return called, f(x)
    except TypeError:
        return called, -7


def square(x):
    return x * x


def half(x):
    return x / 2.0


def told_by_identity(k):
    found = [square, half, math.sqrt]
    f = found[k]
    return f is square, f == found[1], f(16.0)


def handed_on_without_end(n):
    def product(m, k):
        if m == 0:
            return k(1)
        return product(m - 1, lambda v: k(m * v))

    return product(n, lambda v: v)


def composed(ks, x):
    def after(f, g):
        return lambda v: f(g(v))

    steps = [lambda v: v + 1, lambda v: v * 2, lambda v: v - 3]
    whole = lambda v: v
    for k in ks:
        whole = after(whole, steps[k])
    return whole(x)


class Walk:
    def __init__(self, text):
        self.text, self.busy_steps = text, 0

    def idle(self, c):
        return self.busy if c == "a" else self.idle

    def busy(self, c):
        self.busy_steps += 1
        return self.idle if c == "z" else self.busy

    def run(self):
        state = self.idle
        for c in self.text:
            state = state(c)
        return self.busy_steps


def states(text):
    return Walk(text).run()


def recursive(n, k):
    def factorial(m):
        return 1 if m <= 1 else m * factorial(m - 1)

    def fibonacci(m):
        return m if m < 2 else fibonacci(m - 1) + fibonacci(m - 2)

    def pick(j):
        if j == 0:
            return factorial
        return fibonacci

    return pick(k)(n)


PROGRAMS: list[tuple[Callable[..., Any], list[tuple[Any, ...]]]] = [
    (returned_by_a_branch, [("cube", 1.0), ("sine", 0.7), ("other", 3.0)]),
    (a_table_of_methods_in_an_attribute, [("12+3",), ("5~",), ("1!23+",)]),
    (bound_methods_in_records, [(3, 50), (10, 60), (5, 20)]),
    (in_a_list, [([0, 1, 2], 5), ([2, 2], 3), ([1], -40)]),
    (made_in_a_loop, [(1, 2), (3, 1)]),
    (nonlocal_variables, [(1, 2), (5, 3)]),
    (assigned_afterwards, [(1,), (5,)]),
    (a_list_that_they_change, [(1,), (3,)]),
    (none_is_no_function, [(0, 4), (1, 9), (2, 1)]),
    (told_by_identity, [(0,), (1,), (2,)]),
    (handed_on_without_end, [(3,), (5,)]),
    (composed, [([0, 1], 3), ([2], 1), ([1, 1, 0], 2)]),
    (states, [("abzc",), ("bb",), ("axx",)]),
    (recursive, [(5, 0), (7, 1)]),
]


@pytest.mark.parametrize(("fn", "examples"), PROGRAMS, ids=[fn.__name__ for fn, _ in PROGRAMS])
def test_as_in_python(fn: Callable[..., Any], examples: list[tuple[Any, ...]]) -> None:
    found = pcbatch.batch(fn)(*[argument(list(column)) for column in zip(*examples, strict=True)])
    for k, example in enumerate(examples):
        assert alike(as_plain(lane_of(found, k)), as_plain(fn(*example)), 1e-4)


def late_in_a_comprehension(n, x):
    found = [lambda y: y + i for i in range(n)]
    return sum(f(x) for f in found)


def of_other_types(k):
    f = (lambda: 1) if k else (lambda: "a")
    both = [f, f]
    return both[0]()


def nested_told_by_identity(k):
    def one():
        return 1

    def two():
        return 2

    found = [one, two, one]
    f = found[k]
    return f is found[0], f()


REFUSED = [
    (late_in_a_comprehension, "PCB207", "`i` may change after a function that is a value"),
    (of_other_types, "PCB302", "returns values of different types"),
    (nested_told_by_identity, "PCB320", "compares functions that lanes do not tell apart"),
]


@pytest.mark.parametrize(("fn", "code", "title"), REFUSED, ids=[fn.__name__ for fn, *_ in REFUSED])
def test_refused(fn: Callable[..., Any], code: str, title: str) -> None:
    with pytest.raises(pcbatch.CompileError) as info:
        pcbatch.batch(fn)(*[argument([1, 2]) for _ in range(fn.__code__.co_argcount)])
    assert info.value.diagnostics[0].code == code
    assert title in info.value.diagnostics[0].title
