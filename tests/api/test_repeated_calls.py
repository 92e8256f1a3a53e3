"""Calls that repeat an earlier one with other arrays: what is kept of it never leads to another result."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import pcbatch


def plans(f: Any) -> int:
    """How many calls a function remembers."""
    return len(f._programs.repeated.plans)


def test_a_repeated_call_is_not_prepared_again(monkeypatch: pytest.MonkeyPatch) -> None:
    @pcbatch.batch(in_axes=(None, 0))
    def f(w, x):
        return w["a"] * x + w["b"]

    w = {"a": jnp.float32(2.0), "b": jnp.float32(1.0)}
    first = f(w, jnp.arange(3.0))
    assert plans(f) == 1
    monkeypatch.setattr("pcbatch.api.programs.prepare", None)
    again = f({"a": jnp.float32(3.0), "b": jnp.float32(0.0)}, jnp.arange(3.0))
    np.testing.assert_array_equal(first, [1.0, 3.0, 5.0])
    np.testing.assert_array_equal(again, [0.0, 3.0, 6.0])


def test_types_are_looked_at() -> None:
    f = pcbatch.batch(lambda x: x + 1)
    some = jnp.arange(3)
    for x in (some, jnp.arange(3.0), jnp.arange(4), some.astype(jnp.int8), np.arange(3), some):
        assert f(x).dtype == (jnp.asarray(x) + 1).dtype
        np.testing.assert_array_equal(f(x), x + 1)
    assert plans(f) == 4


def test_arrays_that_were_one_may_be_two_later() -> None:
    f = pcbatch.batch(lambda x, y: x - y)
    x, y = jnp.array([5, 7]), jnp.array([1, 2])
    np.testing.assert_array_equal(f(x, x), [0, 0])
    np.testing.assert_array_equal(f(x, y), [4, 5])
    np.testing.assert_array_equal(f(y, y), [0, 0])
    np.testing.assert_array_equal(f(y, x), [-4, -5])


def test_names_and_order_of_arguments() -> None:
    f = pcbatch.batch(lambda x, y: x - y)
    x, y = jnp.array([5]), jnp.array([1])
    for _ in range(2):
        assert (f(x, y)[0], f(y=x, x=y)[0], f(x=y, y=x)[0], f(x, y=y)[0]) == (4, -4, -4, 4)


def test_the_order_of_a_dict() -> None:
    @pcbatch.batch
    def f(table):
        out = 0
        for value in table.values():
            out = 10 * out + value
        return out

    one, two = jnp.array([1]), jnp.array([2])
    for _ in range(2):
        assert (f({"a": one, "b": two})[0], f({"b": two, "a": one})[0]) == (12, 21)


def test_a_default_that_is_changed() -> None:
    scale = [2]

    @pcbatch.batch
    def f(x, by=scale):
        return x * by[0]

    x = jnp.array([3])
    assert (f(x)[0], f(x)[0]) == (6, 6)
    scale[0] = 5
    assert f(x)[0] == pcbatch.batch(f.fn)(x)[0] == 15


def test_calls_in_a_trace_after_calls_outside() -> None:
    f = pcbatch.batch(lambda x: x * x)
    x = jnp.array([1.0, 3.0])
    np.testing.assert_array_equal(f(x), [1, 9])
    np.testing.assert_array_equal(jax.jit(f)(x), [1, 9])
    np.testing.assert_array_equal(jax.jit(lambda: f(x))(), [1, 9])
    np.testing.assert_array_equal(jax.grad(lambda x: f(x).sum())(x), [2, 6])
    np.testing.assert_array_equal(f(x), [1, 9])


@dataclass
class Node:
    """A list as objects."""

    value: int
    next: Node | None = None


def test_packed_objects_share_a_table_or_have_two() -> None:
    @pcbatch.batch
    def f(a, b):
        return a.value - b.value

    one = pcbatch.pack([Node(1), Node(2), Node(3)])
    other = pcbatch.pack([Node(10), Node(20), Node(30)])
    for _ in range(2):
        np.testing.assert_array_equal(f(one, one), [0, 0, 0])
        np.testing.assert_array_equal(f(one, other), [-9, -18, -27])
        np.testing.assert_array_equal(f(other, one), [9, 18, 27])
        np.testing.assert_array_equal(f(one[::-1], one), [2, 0, -2])


def test_failures_name_the_arguments_of_the_call_itself() -> None:
    @pcbatch.batch
    def f(x):
        assert x > 0
        return x

    assert f(jnp.array([4]))[0] == 4
    with pytest.raises(pcbatch.BatchRuntimeError, match="-7"):
        f(jnp.array([-7]))


def test_methods_have_their_objects() -> None:
    @dataclass(frozen=True)
    class Line:
        slope: Any

        @pcbatch.batch
        def at(self, x):
            return self.slope * x

    x = jnp.array([2.0])
    for slope in (1.0, 3.0, 1.0):
        assert Line(slope).at(x)[0] == 2 * slope
