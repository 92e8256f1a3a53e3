"""Functions that are handed on with an object that they have captured: one object, also where a helper makes both."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import pcbatch
from tests.strangers.rows import alike, as_plain, lane_of


def with_list():
    seen = []

    def add(x):
        seen.append(x)
        return x * 2

    return add, seen


def with_cache():
    seen = []

    @functools.cache
    def add(x):
        seen.append(x)
        return x * 2

    return add, seen


def counted(f):
    calls = 0

    @functools.cache
    def called(x):
        nonlocal calls
        calls += 1
        return f(x)

    return called, lambda: calls


def with_dict():
    known = {1: 1}

    def ask(k):
        return known.get(k, -1)

    return ask, known


def with_table():
    table = [1, 2, 3]
    return (lambda k: table[k % 3]), table


def grown_by_calls(n):
    add, seen = with_list()
    return add(n) + add(n + 1) + add(n), len(seen)


def grown_in_a_loop(n):
    add, seen = with_list()
    for k in range(n):
        add(k)
    return len(seen)


def cached(n):
    add, seen = with_cache()
    return add(n) + add(n + 1) + add(n), len(seen)


def calls_of_a_cache(n):
    f, calls = counted(lambda x: x * 3)
    return f(n) + f(n + 1) + f(n), calls()


def changed_dict(n):
    ask, known = with_dict()
    known[n] = 5
    return ask(n)


def changed_table(n):
    at, table = with_table()
    table[n % 3] = 9
    return at(n)


def read_table(n):
    at, table = with_table()
    return at(n) + table[0]


def only_functions(n):
    def made():
        total = [0]

        def add(x):
            total[0] += x

        return add, lambda: total[0]

    add, total = made()
    add(n)
    add(n + 1)
    return total()


EQUAL = [read_table, only_functions]
EITHER = [grown_by_calls, grown_in_a_loop, cached, calls_of_a_cache, changed_dict, changed_table]


def lanes(fn: Callable[[int], Any]) -> bool:
    """Whether lanes give what Python gives."""
    found = pcbatch.batch(fn)(np.array([1, 2]))
    return all(alike(as_plain(lane_of(found, k)), as_plain(fn(k + 1)), 1e-6) for k in range(2))


@pytest.mark.parametrize("fn", EQUAL)
def test_programs_that_compile(fn: Callable[[int], Any]) -> None:
    assert lanes(fn)


@pytest.mark.parametrize("fn", EITHER)
def test_no_lane_keeps_both_apart(fn: Callable[[int], Any]) -> None:
    """These are refused as yet; what compiles has to be right."""
    try:
        same = lanes(fn)
    except pcbatch.CompileError as error:
        same = error.diagnostics[0].code in ("PCB304", "PCB330")
    assert same
