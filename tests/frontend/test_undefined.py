"""Undefined names beside other faults: what is found, and what must not be taken for one."""

# ruff: noqa

from __future__ import annotations

import typing

import jax.numpy as jnp
import pytest

import pcbatch
from pcbatch.errors import CompileError
from pcbatch.frontend import compile_functions
from pcbatch.frontend.source.helpers import Helpers
from tests.frontend.compiling import refusals

outer = 3


def undefined(fn) -> list[str]:
    """The names found undefined in a function that has no other faults."""
    try:
        compile_functions(fn, Helpers(lambda obj: None), {}, names=True)
    except CompileError as error:
        return [d.title.split("`")[1] for d in error.diagnostics if d.code == "PCB202"]
    return []


def everything_defined(n, flag, *, k=2):
    total: NoSuchType = n
    squares = [i * outer for i in range(3)]
    pairs = {a: b for a, b in zip(squares, squares)}
    late = lambda q: q + nowhere
    for i, row in enumerate(jnp.zeros(3)):
        total = total + row + i
    if flag:
        total = total + only_if_flag
    if not flag and missing:
        total = missing
    if n.ndim == 1:
        total = total[unknown]
    if isinstance(n, int) or strange:
        total = total + strange
    if typing.TYPE_CHECKING:
        total = hidden
    if k == "fast":
        total = fast(total)
    return total + len(pairs) + int(__debug__)


def some_undefined(n):
    a = one(n) + two
    while n > three:
        n = n - four
    if n > 3 and a == five:
        n = six if n > seven else eight
    [nine for _ in range(ten)]
    return n


def captured():
    cell = 2

    def inside(n):
        return n + cell

    return inside


def unbound_cell():
    def inside(n):
        return n + cell

    return inside
    cell = 2


def test_no_false_alarms():
    assert undefined(everything_defined) == []
    assert undefined(captured()) == []


def test_certain_ones_are_found():
    names = "one two three four five six seven eight nine ten".split()
    assert sorted(undefined(some_undefined)) == sorted(names)


def test_an_empty_cell_is_left_to_tracing():
    """The function around may fill it before the call."""
    assert undefined(unbound_cell()) == []
    with pytest.raises(CompileError, match="the name `cell` is not defined"):
        pcbatch.batch(unbound_cell())(jnp.arange(3))


def test_they_are_told_with_other_faults():
    def f(n):
        try:
            n = n + undefined_name
        except undefined_error as problem:
            n = str(problem)
        import os as system

        with open_it(n) as handle:
            n = handle + system
        match n:
            case [first, *others]:
                n = first + others

        class Inside:
            field = 1
            other = field

        return n

    found = [line for code, line in refusals(f) if code == "PCB202"]
    assert found == [3, 4, 8]


def test_a_function_without_other_faults_is_left_to_tracing():
    def f(n):
        return n + undefined_name

    assert refusals(f) == []


def test_faults_and_what_only_the_graph_shows():
    def f(n):
        n + 1
        m = twice(n)

        def twice(k):
            return 2 * k

        if n > 3:
            return m

    assert refusals(f) == [("PCB119", 2), ("PCB201", 3)]
