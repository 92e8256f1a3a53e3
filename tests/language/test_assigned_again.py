"""A variable that is assigned while what changes its object is evaluated: Python changes the object from before."""

from __future__ import annotations

import numpy as np
import pytest

import pcbatch
from pcbatch.errors import CompileError


def appended(n):
    xs = [n]

    def rest():
        nonlocal xs
        xs = xs[1:]
        return 0

    xs.append(rest())
    return len(xs)


def stored(n):
    xs = [n, n]

    def rest():
        nonlocal xs
        xs = xs[1:]
        return 0

    xs[rest()] = 5
    return xs[0]


def augmented(n):
    xs = [n, n]

    def rest():
        nonlocal xs
        xs = xs[1:]
        return 1

    xs[0] += rest()
    return xs[0]


def deleted(n):
    xs = [n, n]

    def helper():
        nonlocal xs
        xs = [n, n, n]
        return 0

    def rest():
        return helper()

    del xs[rest()]
    return len(xs)


def walrus(n):
    xs = [n]
    xs.append(len(xs := [n, n]))
    return len(xs)


@pytest.mark.parametrize("fn", [appended, walrus], ids=lambda fn: fn.__name__)
def test_a_method_is_one_of_the_object_from_before(fn) -> None:
    assert pcbatch.batch(fn)(np.arange(3)).tolist() == [fn(n) for n in range(3)]


@pytest.mark.parametrize("fn", [stored, augmented, deleted], ids=lambda fn: fn.__name__)
def test_the_object_from_before_is_not_taken_for_the_new_one(fn) -> None:
    with pytest.raises(CompileError, match="PCB330.*`xs` is assigned while what changes it is evaluated"):
        pcbatch.batch(fn)(np.arange(3))


def value_first(n):
    xs = [n, n]

    def rest():
        nonlocal xs
        xs = xs[1:]
        return n + 1

    xs[0] = rest()
    return len(xs), xs[0]


def in_place(n):
    xs = [n, n]

    def add():
        nonlocal xs
        xs.append(n)
        return 1

    def put():
        xs[0] = n + 3
        return 1

    xs.append(add())
    xs[put()] += add()
    return len(xs), xs[0], xs[1], xs[-1]


@pytest.mark.parametrize("fn", [value_first, in_place], ids=lambda fn: fn.__name__)
def test_what_changes_the_object_in_place_may_stand_there(fn) -> None:
    got = pcbatch.batch(fn)(np.arange(3))
    assert [tuple(int(part[k]) for part in got) for k in range(3)] == [fn(k) for k in range(3)]
