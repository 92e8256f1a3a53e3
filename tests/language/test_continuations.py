"""Functions that get functions and go on by them: continuations, partials of chosen functions, wrappers."""

from __future__ import annotations

import functools
import math
from collections.abc import Callable
from typing import Any

import pytest

import pcbatch
from tests.strangers.rows import alike, argument, as_plain, lane_of


def scale(k, x):
    return k * x


def counted_by_hand(f):
    calls = 0
    memo = {}

    def inner(x):
        nonlocal calls
        if x not in memo:
            calls += 1
            memo[x] = f(x)
        return memo[x]

    return inner, lambda: calls


def a_wrapper_that_remembers(n):
    f, calls = counted_by_hand(lambda x: x * 2)
    return f(n) + f(3) + f(n), calls()


def walked(tree, i, go_on):
    if i >= len(tree):
        return go_on(0)
    return walked(tree, 2 * i + 1, lambda a: walked(tree, 2 * i + 2, lambda b: go_on(a + b + tree[i])))


def in_continuation_passing_style(tree):
    return walked(tree, 0, lambda total: 2 * total)


def matched(node, text, i, go_on):
    if node[0] == "char":
        return go_on(i + 1) if i < len(text) and text[i] == node[1] else None
    if node[0] == "seq":

        def after(n, j):
            return go_on(j) if n == len(node[1]) else matched(node[1][n], text, j, lambda e: after(n + 1, e))

        return after(0, i)
    _, inner, low, high = node

    def again(count, j):
        if high is None or count < high:
            end = matched(inner, text, j, lambda e: again(count + 1, e) if e > j else None)
            if end is not None:
                return end
        return go_on(j) if count >= low else None

    return again(0, i)


def a_function_that_captures_itself_with_a_continuation(a, low, text):
    end = matched(("rep", ("char", a), low, None), text, 0, lambda e: e)
    return -1 if end is None else end


def partials_of_partials(a, b):
    f = functools.partial(scale, a)
    g = functools.partial(f, b)
    return f(2), g()


SHAPES = {"line": lambda a, x: a * x, "bell": lambda a, x: math.exp(-a * x * x), "wave": lambda a, x: math.sin(a * x)}


def counted(f):
    calls = 0

    def inner(x):
        nonlocal calls
        calls += 1
        if x < 0:
            raise ValueError
        return f(x)

    return inner, lambda: calls


def trapezoid(f, a, b, n):
    h = (b - a) / n
    return h * ((f(a) + f(b)) / 2 + sum(f(a + i * h) for i in range(1, n)))


def a_partial_of_a_chosen_function_in_a_wrapper(kind, a, low):
    f, calls = counted(functools.partial(SHAPES[kind], a))
    try:
        return trapezoid(f, low, 2.0, 2), trapezoid(f, low, 2.0, 4), calls()
    except ValueError:
        return 0.0, 0.0, calls()


PROGRAMS: list[tuple[Callable[..., Any], list[tuple[Any, ...]]]] = [
    (partials_of_partials, [(3, 5), (2, -1)]),
    (a_partial_of_a_chosen_function_in_a_wrapper, [("line", 2.0, 0.0), ("bell", 1.0, 1.0), ("wave", 0.5, -1.0)]),
    (in_continuation_passing_style, [([1, 2, 3],), ([4],), ([5, 6, 7, 8, 9],)]),
    (a_function_that_captures_itself_with_a_continuation, [("a", 1, "aab"), ("b", 2, "ba"), ("a", 0, "bb")]),
    (a_wrapper_that_remembers, [(3,), (4,)]),
]


@pytest.mark.parametrize(("fn", "examples"), PROGRAMS, ids=[fn.__name__ for fn, _ in PROGRAMS])
def test_as_in_python(fn: Callable[..., Any], examples: list[tuple[Any, ...]]) -> None:
    found = pcbatch.batch(fn)(*[argument(list(column)) for column in zip(*examples, strict=True)])
    for k, example in enumerate(examples):
        assert alike(as_plain(lane_of(found, k)), as_plain(fn(*example)), 1e-4)
