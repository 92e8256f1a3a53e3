"""Loops over the value of a key that a dict may lack, `d.get(key, ())`: an empty tuple is any empty container there."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable
from typing import Any

import jax.numpy as jnp
import pytest

import pcbatch
from tests.strangers.rows import alike, as_plain, lane_of


def cells(n: Any) -> Any:
    found: dict[Any, Any] = {}
    for k in range(n):
        found.setdefault((k % 3, k % 2), []).append(k * k)
    return found


def _loop(n: Any) -> Any:
    total = 0
    for q in cells(n).get((1, 0), ()):
        total += q
    return total


def _comprehension(n: Any) -> Any:
    table = cells(n)
    return [q for dx in (-1, 0, 1) for q in table.get((n % 3 + dx, 0), ())]


def _consumers(n: Any) -> Any:
    table, most = cells(n), 0
    for k, q in enumerate(table.get((0, 0), ())):
        most = max(most, k * q)
    for a, b in zip(table.get((0, 0), ()), table.get((1, 1), ()), strict=False):
        most += a * b
    return most, sorted(table.get((2, 0), ())), sum(table.get((2, 1), ())), max(table.get((0, 1), ()), default=-1)


def _tuples(n: Any) -> Any:
    table = {k: (k, k + 1) for k in range(n)}
    return [q for q in table.get(n - 1, ())]


def _known(n: Any) -> Any:
    table = {"a": [1, 2]}
    return [q + n for k in ("a", "b") for q in table.get(k, ())]


def _always_empty(n: Any) -> Any:
    table: dict[Any, Any] = {}
    return [q for q in table.get(n, ())] + [n]


def _default_dict(n: Any) -> Any:
    table = defaultdict(list)
    for k in range(n):
        table[k % 2].append(k)
    return [q for q in table.get(5, ())], [q for q in table.get(1, ())], len(table)


def _dict_of_sets(n: Any) -> Any:
    table: dict[Any, Any] = {}
    for k in range(n):
        table.setdefault(k % 3, set()).add(k)
    return sum(table.get(1, ())), sorted(table.get(7, ()))


PROGRAMS = (_loop, _comprehension, _consumers, _tuples, _known, _always_empty, _default_dict, _dict_of_sets)


@pytest.mark.parametrize("function", PROGRAMS, ids=lambda function: function.__name__)
def test_a_lane_does_what_python_does(function: Callable[..., Any]) -> None:
    found = pcbatch.batch(function)(jnp.arange(7))
    assert alike([as_plain(lane_of(found, n)) for n in range(7)], [as_plain(function(n)) for n in range(7)], 0)


class Shelf:
    """An object whose method has the name of that of a dict."""

    def __init__(self) -> None:
        self.asked = 0

    def get(self, k: Any, default: Any) -> Any:
        self.asked += 1
        return (k, k) if k > 2 else (k, 0)


def test_a_method_of_the_users_is_called() -> None:
    def asked(n: Any) -> Any:
        shelf, total = Shelf(), 0
        for q in shelf.get(n, ()):
            total += q
        return total, shelf.asked

    total, count = pcbatch.batch(asked)(jnp.arange(5))
    assert total.tolist() == [0, 1, 2, 6, 8] and count.tolist() == [1] * 5


def test_a_value_that_is_kept_has_to_be_of_one_kind() -> None:
    with pytest.raises(pcbatch.CompileError, match="not a list and a tuple"):
        pcbatch.batch(lambda n: cells(n).get((0, 0), ()))(jnp.arange(3))
