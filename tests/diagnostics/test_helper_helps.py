"""Helpers with control flow of their own, as the help of PCB305 says to write them, however they are called."""

from __future__ import annotations

import dataclasses
import functools
from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import pcbatch
from pcbatch import CompileError
from tests.programs import elsewhere
from tests.programs.elsewhere import half as its_half

pytestmark = pytest.mark.promotion("standard")
X = np.array([1.5, -2.5, 3.7], np.float32)

half = pcbatch.inline(elsewhere.half)
its_half = pcbatch.inline(its_half)
its_factorial = pcbatch.batch(elsewhere.factorial)


@pcbatch.inline
def above(x, low):
    return x if x > low else low


@pcbatch.inline
def scaled(x):
    return 2.0 * above(x, 1.0)


@pcbatch.batch
def below(x, high):
    return x if x < high else high


@pcbatch.batch
def scaled_too(x):
    return 2.0 * below(x, 1.0)


@pcbatch.batch
def factorial(n):
    return 1.0 if n < 1 else n * factorial(n - 1)


above_one = functools.partial(above, low=1.0)
positive = pcbatch.inline(lambda x: x if x > 0 else 0.0)


@pcbatch.inline
def moved_out(v, x):
    return v if v > x else x


class Ramp:
    def __init__(self, rate: float) -> None:
        self.rate = rate

    @pcbatch.inline
    def rise(self, x):
        return x * self.rate if x > 0 else 0.0

    @pcbatch.batch
    def climb(self, x):
        return x if x > 9 else self.climb(x + self.rate)

    @staticmethod
    @pcbatch.inline
    def one(x):
        return x if x > 1 else 1.0

    @pcbatch.inline
    @staticmethod
    def other(x):
        return x if x > 2 else 2.0

    @pcbatch.batch
    def both(self, x):
        return self.rise(x) + Ramp.rise(self, x) + self.climb(x) + self.one(x) + Ramp.other(x)


@jax.tree_util.register_dataclass
@dataclasses.dataclass
class Line:
    slope: Any

    @pcbatch.inline
    def rise(self, x):
        return x * self.slope if x > 0 else 0.0

    @pcbatch.batch
    def climb(self, x):
        return x if x > 9 else Line.climb(self, x + self.slope)

    @pcbatch.batch
    def both(self, x):
        return Line.rise(self, x) + Line.climb(self, x)


RAMP, LINE = Ramp(2.0), Line(jnp.float32(0.5))


def decorated(x):
    return scaled(x) + scaled_too(x)


def through_a_partial(x):
    return above_one(x)


def recursive(x):
    return factorial(x) + its_factorial(x)


def a_lambda(x):
    return positive(x)


def a_nested_function(x):
    return moved_out(2 * x, x)


def wrapped(x):
    return half(x) + its_half(x)


def called_by_name(x):
    total = 0.0
    for v in jnp.ones(2) * x:
        total += above_one(v)
    return total


def methods(x):
    return RAMP.rise(x) + RAMP.climb(x) + Ramp.one(x) + RAMP.other(x) + RAMP.both(x)


def methods_of_shared_arrays(x):
    return LINE.rise(x) + LINE.climb(x) + LINE.both(x)


def methods_of_values(x):
    line = Line(x * x + 1)
    return Line.rise(line, x) + Line.both(line, x)


FOLLOWED = [
    decorated,
    through_a_partial,
    recursive,
    a_lambda,
    a_nested_function,
    wrapped,
    called_by_name,
    methods,
    methods_of_shared_arrays,
    methods_of_values,
]


@pytest.mark.share(2)
@pytest.mark.parametrize("fn", FOLLOWED)
def test_it_works(fn: Callable[..., Any]) -> None:
    batched = pcbatch.batch(fn)
    np.testing.assert_allclose(batched(X), [batched.plain(jnp.float32(x)) for x in X], rtol=1e-6)


@pytest.mark.parametrize("method", [RAMP.both, LINE.both, RAMP.climb, LINE.climb])
def test_methods_themselves(method: Any) -> None:
    np.testing.assert_allclose(method(X), [method.plain(jnp.float32(x)) for x in X], rtol=1e-6)


def branches_where_it_is_called(x):
    return (lambda v: v if v > 0 else 0.0)(x)


def given_to_jax(x):
    return jnp.sum(jax.lax.map(elsewhere.half, jnp.ones(2) * x))


@pytest.mark.parametrize(
    ("batched", "help"),
    [
        (pcbatch.batch(branches_where_it_is_called), "write it out as statements"),
        (pcbatch.batch(given_to_jax), "write `jax.lax.map` as a loop in the batched function"),
    ],
)
def test_what_is_told(batched: Any, help: str) -> None:
    with pytest.raises(CompileError) as info:
        batched(X)
    assert [found.code for found in info.value.diagnostics] == ["PCB305"]
    assert help in info.value.diagnostics[0].helps[0]
