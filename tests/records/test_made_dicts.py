"""Dicts around records that lanes have made keep the order of their keys, as results and as arguments."""

from __future__ import annotations

from typing import Any, NamedTuple

import jax.numpy as jnp
import numpy as np

import pcbatch


class Cell(NamedTuple):
    """A cell of a linked list."""

    head: Any
    tail: Any


@pcbatch.batch
def listed(n: Any) -> Any:
    cells, found = None, []
    for k in range(n):
        cells = Cell(k, cells)
        found.append({"z": cells, "a": k, "c": (k, {"y": cells, "b": k})})
    return found


@pcbatch.batch
def keys(found: Any) -> Any:
    t = 0
    for each in found:
        for key in each:
            t = t * 3 + (1 if key == "z" else 2 if key == "a" else 0)
    return t


def _ordered(value: Any) -> Any:
    """A value in which the order of keys counts."""
    if isinstance(value, dict):
        return [(key, _ordered(part)) for key, part in value.items()]
    return type(value)(map(_ordered, value)) if type(value) in (list, tuple) else value


def test_results_and_arguments() -> None:
    made = listed(jnp.array([2, 1]))
    expected = [listed.plain(n) for n in (2, 1)]
    assert _ordered(made.tolist()) == _ordered(expected)
    assert _ordered(made[1]) == _ordered(expected[1])
    assert np.asarray(keys(made)).tolist() == [keys.plain(found) for found in expected]
