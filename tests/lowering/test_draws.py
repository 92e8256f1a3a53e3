"""Random numbers of Python and NumPy in a lane are refused, wherever they are drawn; what is no draw is not."""

from __future__ import annotations

import datetime
import random
import sys
import time
from collections.abc import Callable
from typing import Any

import jax
import numpy as np
import pytest

import pcbatch
from pcbatch import CompileError

pytestmark = pytest.mark.promotion("standard")
N = np.array([3, 5], np.int32)
GENERATOR = np.random.default_rng(0)
OLDER = np.random.RandomState(0)
OWN = random.Random(0)
WEIGHTS = np.random.default_rng(1).normal(size=3)


def of_python():
    return random.gauss(0, 1)


def of_numpy():
    return np.random.rand()


def of_a_generator():
    return GENERATOR.normal() + OLDER.normal() + OWN.random()


def two_down():
    return 1.0 + of_numpy()


def in_a_lambda(n):
    return (lambda: random.random())() + n


def in_a_comprehension(n):
    return [random.choice((1, 2)) for _ in range(2)][0] + n


def in_a_nested_function(n):
    def draw():
        return np.random.normal()

    return draw() + n


def by_an_imported_name(n):
    return uniform(0, 1) + n


def without_a_seed(n):
    return np.random.default_rng().normal() + n


def a_clock(n):
    return time.perf_counter() + n


def a_date(n):
    return datetime.datetime.now().microsecond + n


def kept(n):
    rng = np.random.default_rng(0)
    return n + rng.normal()


def statement(n):
    np.random.seed(0)
    return n


def asked(n):
    return n + int(input("how many? "))


uniform = random.uniform
HELPERS = [of_python, of_numpy, of_a_generator, two_down]
CALLS = [
    in_a_lambda,
    in_a_comprehension,
    in_a_nested_function,
    by_an_imported_name,
    without_a_seed,
    a_clock,
    a_date,
    kept,
    statement,
    asked,
]


def codes(fn: Callable[..., Any]) -> list[str]:
    with pytest.raises(CompileError) as info:
        pcbatch.batch(fn)(N)
    return [found.code for found in info.value.diagnostics]


@pytest.mark.parametrize("fn", CALLS)
def test_calls(fn: Callable[..., Any]) -> None:
    assert codes(fn) == ["PCB318"]


@pytest.mark.parametrize("helper", HELPERS)
def test_helpers(helper: Callable[[], Any]) -> None:
    def lane(n):
        return n + helper()

    profile = sys.getprofile()
    assert codes(lane) == ["PCB318"]
    assert sys.getprofile() is profile


def shuffled_by_key(n):
    return jax.random.permutation(jax.random.key(0), 4)[n % 4] + n


def with_a_seed(n):
    return n + np.random.default_rng(0).integers(9) + np.random.RandomState(1).randint(3) + random.Random(2).random()


def drawn_before(n):
    return n * WEIGHTS[0]


def not_reached(n):
    return n * random.random() if isinstance(n, str) else n


@pytest.mark.parametrize("fn", [shuffled_by_key, with_a_seed, drawn_before, not_reached])
def test_what_is_no_draw(fn: Callable[..., Any]) -> None:
    np.testing.assert_allclose(pcbatch.batch(fn)(N), [np.float32(fn(jax.numpy.int32(n))) for n in N])


def test_a_draw_that_no_function_of_the_lane_makes() -> None:
    """Another thread may draw while a program is compiled."""

    def lane(n):
        return n + elsewhere(n)

    def elsewhere(n):
        advance()
        return n

    def advance(step=random.random):
        step()

    assert pcbatch.batch(lane)(N).tolist() == [6, 10]
