"""Idioms of public programs, each lane compared with plain Python."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import pcbatch
from tests.strangers.rows import as_plain, lane_of

NAMES = ("Mercury", "Venus", "Earth", "Mars")


def digit_sum(n):
    total = 0
    while n > 0:
        total += n % 10
        n //= 10
    return total


def number_of(part):
    value = int(part)
    return value + 1


def numbers(s):
    return [number_of(part) for part in s.split(".")]


def date(s):
    try:
        month, day, year = s.split("-")
        month, day, year = int(month), int(day), int(year)
    except ValueError:
        return -1
    return year * 10000 + month * 100 + day


def reversed_cause(s):
    try:
        return number_of(s)
    except ValueError as err:
        if len(s) == 1:
            return -1
        raise KeyError("no number") from err


def caught(s):
    try:
        return reversed_cause(s)
    except KeyError:
        return -2


def brackets(s):
    pairs, letters, found = {")": "(", "]": "["}, "abc(", []
    for c in s:
        found.append((c in pairs.values(), c in pairs.keys(), letters.find(c), letters.count(c)))
    return found


def ordered(xs):
    by_lambda = sorted(xs, key=lambda x: x if x % 2 else -x, reverse=True)
    return sorted(xs, key=digit_sum), by_lambda, max(xs, key=digit_sum), min(xs, key=lambda x: (digit_sum(x), -x))


def between(i, j):
    if i > j:
        return ()
    return NAMES[i + 1 : j]


def last_digits(n):
    best = 0
    for k in range(n):
        best = max(best, k * k)
    return sum(int(c) for c in str(best))


def first_of(n):
    found = None
    for k in range(n):
        if k == 2:
            found = "two"
    return found


def paths(n):
    found = []

    def go(path, left):
        if left == 0:
            found.append(path)
        for k in range(left):
            go([*path, k], left - k - 1)

    go([], n)
    return found


CASES: list[tuple[Callable[..., Any], list[tuple[Any, ...]]]] = [
    (numbers, [("1.22.3",), ("7",)]),
    (date, [("1-22-333",), ("1-2",), ("1-x-3",), ("1-2-3-4",)]),
    (caught, [("12",), ("x",), ("xy",)]),
    (brackets, [("a)(",), ("[c",)]),
    (ordered, [([31, 12, 2, 40],), ([40, 4],), ([7],)]),
    (between, [(0, 3), (2, 1), (0, 1)]),
    (last_digits, [(0,), (5,), (12,)]),
    (first_of, [(0,), (5,)]),
    (paths, [(1,), (3,), (2,)]),
]


def column(values: tuple[Any, ...]) -> Any:
    if isinstance(values[0], str):
        return pcbatch.ragged(values)
    return pcbatch.ragged(values) if isinstance(values[0], list) else np.array(values)


def of_lane(value: Any, lane: int) -> Any:
    if isinstance(value, tuple):
        return tuple(of_lane(part, lane) for part in value)
    if hasattr(value, "present"):
        return of_lane(value.value, lane) if value.present[lane] else None
    return value.tolist()[lane]


@pytest.mark.parametrize(("fn", "examples"), CASES, ids=[fn.__name__ for fn, _ in CASES])
def test_lanes_are_plain_python(fn: Callable[..., Any], examples: list[tuple[Any, ...]]) -> None:
    found = pcbatch.batch(fn)(*(column(values) for values in zip(*examples, strict=True)))
    assert [of_lane(found, lane) for lane in range(len(examples))] == [fn(*example) for example in examples]


def stored(n):
    out, path = [], [n]
    put(out, path)
    path.append(1)
    return out, path


def put(out, path):
    out.append(path)


def changed_within(n):
    out, path = [], [n]
    put(out, path)
    touch(out)
    return path


def touch(out):
    out[0].append(5)


def test_a_change_that_another_name_would_show() -> None:
    found = pcbatch.batch(stored)(np.array([1, 2]))
    assert [as_plain(lane_of(found, k)) for k in range(2)] == [as_plain(stored(n)) for n in (1, 2)]
    with pytest.raises(pcbatch.CompileError, match="PCB330"):
        pcbatch.batch(changed_within).lower(np.array([1, 2]))


def test_lists_are_no_texts() -> None:
    with pytest.raises(pcbatch.UsageError, match="PCB405"):
        pcbatch.ragged([["ab", "c"], ["d"]], dtype=str)
