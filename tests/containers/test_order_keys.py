"""Builtins as keys of orders stand for the lane's own: `sorted(xs, key=str)` sorts by the texts of the numbers."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import pcbatch

LISTS = [[3, 10, 2, 30], [40, 4], [7]]


def orders(xs: list[int]) -> Any:
    ys = xs.copy()
    ys.sort(key=str, reverse=True)
    return sorted(xs, key=str), ys, sorted(xs, key=bin), sorted(xs, key=float), sorted(map(str, xs), key=len)


def extremes(xs: list[int]) -> Any:
    return max(xs, key=str), min(xs, key=str)


def called(n: int) -> str:
    made = str
    return made(n) + "".join(sorted("hello", key=ord))


@pytest.mark.parametrize("function", [orders, extremes])
def test_of_a_list(function: Any) -> None:
    found = [part.tolist() for part in pcbatch.batch(function)(pcbatch.ragged(LISTS))]
    assert list(zip(*found, strict=True)) == [function(xs) for xs in LISTS]


def test_builtins_that_are_values() -> None:
    assert pcbatch.batch(called)(np.array([12, 7])).tolist() == [called(12), called(7)]


def test_a_text_that_python_made_of_a_value_of_the_lane_is_refused() -> None:
    """A `repr` is the same for all elements while the key is traced, so it would leave the list as it was."""

    def by_repr(xs: list[int]) -> list[int]:
        return sorted(xs, key=repr)

    with pytest.raises(pcbatch.CompileError, match="made while compiling"):
        pcbatch.batch(by_repr).lower(pcbatch.ragged(LISTS))
