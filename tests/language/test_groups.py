"""Loops over `itertools.groupby`, whose groups Python takes from one iterator."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from itertools import groupby
from typing import Any

import pytest

import pcbatch

LISTS = [[1, 5, 2, 2], [7], [4, 4, 3, 11, -2, -2, -2], []]


def runs(xs):
    text = "".join(f"{len(list(run))}x{key}" for key, run in groupby(xs))
    longest = max((sum(1 for _ in run) for _, run in groupby(xs)), default=0)
    return text, longest, [key for key, _ in groupby(xs)], [x for k, run in groupby(xs) for x in run if k > 1]


def by_a_key(xs):
    sums = {k: sum(run) for k, run in groupby(sorted(xs), key=lambda x: x // 3)}
    found, total = [], 0
    for large, run in itertools.groupby(xs, lambda x: x > 3):
        run = list(run)
        found.append((large, run[0], len(run)))
        if len(found) > 2:
            break
    for _, part in groupby(xs, key=lambda x: x % 2):
        for x in part:
            if x > 4:
                break
            total = 3 * total + x
    return sums, found, total, [[len([*g]) for _, g in groupby(run)] for _, run in groupby(xs, lambda x: x > 3)]


@pytest.mark.parametrize("function", [runs, by_a_key])
def test_groups_are_those_of_python(function: Callable[..., Any]) -> None:
    found = pcbatch.batch(function)(pcbatch.ragged(LISTS))
    for lane, xs in enumerate(LISTS):
        got = tuple(part.tolist()[lane] for part in found)
        assert got == function(list(xs))


def kept(xs):
    return [list(run) for run in [run for _, run in groupby(xs)]]


def twice(xs):
    return [sum(run) + len(list(run)) for _, run in groupby(xs)]


def in_each_trip(xs):
    return [list(run) for _, run in groupby(xs) for _ in range(2)]


def lazily(xs):
    parts = []
    for _, run in groupby(xs):
        parts.append(x for x in run)
    return [list(part) for part in parts]


def behind_the_loop(xs):
    run = []
    for _, run in groupby(xs):
        pass
    return list(run)


@pytest.mark.parametrize("function", [kept, twice, in_each_trip, lazily, behind_the_loop])
def test_groups_that_are_empty_by_then_are_refused(function: Callable[..., Any]) -> None:
    with pytest.raises(pcbatch.CompileError, match="PCB306"):
        pcbatch.batch(function)(pcbatch.ragged(LISTS))
