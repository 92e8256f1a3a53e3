"""Calls with `*values` of functions with optional parameters: types tell how many there are."""

from __future__ import annotations

import math
from math import dist
from typing import Any

import numpy as np
import pytest

import pcbatch

pytestmark = pytest.mark.promotion("standard")


def bracket(f, low, high, pieces):
    xs = [low + (high - low) * i / pieces for i in range(pieces + 1)]
    for a, b in zip(xs, xs[1:], strict=False):
        if f(a) * f(b) <= 0:
            return a, b
    raise ValueError("no root")


def bisect(f, a, b, tolerance=1e-3, limit=40):
    for k in range(limit):
        middle = (a + b) / 2
        a, b = (a, middle) if f(a) * f(middle) <= 0 else (middle, b)
        if b - a < tolerance:
            return middle + k
    return middle


class Box:
    def __init__(self, n):
        self.n = n

    def span(self):
        return self.n, self.n + 3

    def filled(self, first, last=5, step=1):
        total = 0
        for i in range(first, last, step):
            total += i * self.n
        return total


def total(*xs, scale=1):
    done = 0
    while done < 50:
        done += sum(xs) + 1
    return done * scale


def counted(a=1, b=2):
    done = 0
    while done < a:
        done += b
    return done


def test_optional_parameters_get_what_there_is() -> None:
    def run(n):
        box, one, pair = Box(n), (n,), (n, n + 1)
        boxes = box.filled(*box.span()), box.filled(*one), box.filled(*pair, step=2), box.filled(n, *one)
        totals = total(*pair), total(*pair, scale=2), total(1, *pair)
        counts = counted(*()), counted(*(n, 2)), counted(*[n])
        return *boxes, *totals, *counts, bisect(lambda x: x * x - n, *bracket(lambda x: x * x - n, 0.0, 10.0, 7))

    ns = np.array([2, 9, 50], np.int32)
    np.testing.assert_allclose(np.transpose(pcbatch.batch(run)(ns)), [run(int(n)) for n in ns], rtol=1e-4)


def between(low, high, *, by=1):
    if low > high:
        return (low - high) // by
    return high


class Span:
    def __init__(self, low, high):
        self.size = high - low


def of_positive(xs):
    chosen = [x for x in xs if x > 0]
    try:
        found = between(*chosen, by=2)
    except TypeError:
        return -1, -1.0, -1
    return found + between(7, *chosen[1:]), dist(*[(x, 2) for x in chosen]), Span(*sorted(chosen)).size


def test_a_list_of_the_lane_gives_as_many_arguments_as_a_function_needs() -> None:
    xs = [[3, -1, 5], [9, 2], [1], [1, 2, 3], [-4]]
    found = pcbatch.batch(of_positive)(pcbatch.ragged(xs))
    for lane, expected in enumerate(map(of_positive, xs)):
        np.testing.assert_allclose([part[lane] for part in found], expected, rtol=1e-6)
    failed = pcbatch.batch(lambda xs: dist(*xs)).run(pcbatch.ragged([[(1, 2), (4, 6)], [(1, 2)]]))
    assert [int(status) for status in failed.status] == [pcbatch.Status.OK, pcbatch.Status.ERROR]
    assert failed.value[0] == 5.0


def added(*xs):
    done = 0
    for x in xs:
        done += x
    return done


def handed_on(*xs, times=1):
    return times * added(*xs) + added(1, *xs)


CHOSEN: dict[str, Any] = {
    "add": lambda a, b: a + b,
    "negate": lambda a: -a,
    "sum": lambda *xs: sum(xs),
    "mean": lambda *xs: sum(xs) / len(xs),
    "scale": lambda a, b=3.0: a * b,
    "max": max,
    "min": min,
    "power": math.pow,
    "length": math.hypot,
}


def of_table(names, xs):
    results, failed = [], 0
    for name in names:
        try:
            results.append(CHOSEN[name](*[x + 1 for x in xs]))
        except (TypeError, ZeroDivisionError):
            failed += 1
    return results, failed


def of_rows(rows):
    return [counted(*row) + max(*row, 0, 1) for row in rows], [min(*row, 2, 9, key=lambda x: -x) for row in rows]


def test_a_list_of_the_lane_gives_any_number_of_arguments() -> None:
    xs = [[3, 1, 2], [5], [], [4, 4]]

    def run(xs):
        return added(*xs), handed_on(*xs, times=3), added(7, *sorted(xs)), added(*xs[:1])

    found = pcbatch.batch(run)(pcbatch.ragged(xs))
    for lane, one in enumerate(xs):
        assert tuple(int(part[lane]) for part in found) == run(one)


def test_functions_of_a_table_get_as_many_arguments_as_a_list_of_the_lane_has() -> None:
    names, xs = list(CHOSEN), [[1.5, 2.0], [3.0], [], [4.0, -1.0, 2.5]]
    results, failed = pcbatch.batch(of_table)(pcbatch.ragged([names] * len(xs)), pcbatch.ragged(xs))
    for lane, one in enumerate(xs):
        expected = of_table(names, one)
        np.testing.assert_allclose(np.asarray(results[lane]), expected[0], rtol=1e-6)
        assert failed[lane] == expected[1]


def test_optional_parameters_get_what_a_list_of_the_lane_has() -> None:
    rows = [[[1, 2], [3]], [[9]], [[], [4, 4]]]
    found = pcbatch.batch(of_rows)(pcbatch.ragged(rows))
    assert [[list(map(int, part[lane])) for part in found] for lane in range(3)] == [list(of_rows(one)) for one in rows]
    failed = pcbatch.batch(lambda xs: counted(*xs)).run(pcbatch.ragged([[1, 2], [1, 2, 3], []]))
    assert [int(status) for status in failed.status] == [pcbatch.Status.OK, pcbatch.Status.ERROR, pcbatch.Status.OK]
    assert [int(failed.value[lane]) for lane in (0, 2)] == [counted(1, 2), counted()]


def test_what_python_says_of_the_number_of_arguments_is_not_guessed() -> None:
    def said(xs):
        try:
            return str(max(*xs))
        except TypeError as error:
            return str(error)

    found = pcbatch.batch(said).run(pcbatch.ragged([[1, 2], [3]]))
    assert int(found.status[0]) == pcbatch.Status.OK and int(found.status[1]) != pcbatch.Status.OK
    with pytest.raises(pcbatch.CompileError, match="PCB306"):  # `max((3, 1))` is 3
        pcbatch.batch(lambda xs: max(*[(x, 1) for x in xs]))(pcbatch.ragged([[1, 2], [3]]))
    with pytest.raises(pcbatch.CompileError, match="PCB306"):
        pcbatch.batch(lambda xs: max(*xs, default=3))(pcbatch.ragged([[1, 2], [3]]))
