"""What the help of a message tells to write is accepted, and gives in every lane what the plain function gives."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import pcbatch

pytestmark = pytest.mark.promotion("standard")
N = np.arange(1, 4, dtype=np.int32)


def reversed_enumerate(n):
    xs = jnp.arange(3) + n
    for i, x in zip(reversed(range(len(xs))), reversed(xs)):
        n = n * 2 + i * x
    return n


def zipped_rows(n):
    rows = ((n, 1), (2, n))
    for a, b in tuple(zip(*rows)):
        n += a * b
    return n


def array_beside_a_range(n):
    total = 0
    for price, _ in zip(jnp.array((5, 3, 2)), range(n)):
        total += price
    return total


def left_with_break(n):
    total = 0
    for i, price in enumerate((5, 3, 2)):
        if i >= n:
            break
        total += price
    return total


def list_without_an_element(n):
    xs = [n, 2 * n, 3]
    xs = [*xs[:1], *xs[2:]]
    return sum(xs)


def chosen_call(n):
    return up(n) if n > 1 else down(n)


def number_as_a_float(n):
    top = n
    if n > 1:
        top = 3_000_000_000.0
    return top


@pcbatch.batch
def up(n):
    return n + 1 if n > 0 else n


@pcbatch.batch
def down(n):
    return n - 1 if n > 0 else n


FOLLOWED = [
    reversed_enumerate,
    zipped_rows,
    array_beside_a_range,
    left_with_break,
    list_without_an_element,
    chosen_call,
    number_as_a_float,
]


@pytest.mark.parametrize("fn", FOLLOWED)
def test_it_works(fn: Callable[..., Any]) -> None:
    batched = pcbatch.batch(fn)
    np.testing.assert_allclose(batched(N), [np.float32(batched.plain(jnp.int32(n))) for n in N])


def number_beyond(n):
    top = n
    if n > 1:
        top = 3_000_000_000
    return top


def test_a_wider_type_is_told_only_if_the_join_is_wide_enough() -> None:
    """uint32 and int32 join to int64, which is int32 without 64-bit types."""
    with pytest.raises(pcbatch.CompileError) as info:
        pcbatch.batch(number_beyond)(N)
    assert [(d.code, "uint32" in d.helps[0]) for d in info.value.diagnostics] == [("PCB312", False)]
    with jax.enable_x64(True), pytest.raises(pcbatch.CompileError, match=r"jnp\.(uint32|int64)\(3000000000\)"):
        pcbatch.batch(number_beyond)(N)
