"""Parameters that the functions of a recursion hand on unchanged: one variable for all of them, which no call saves."""

from __future__ import annotations

from typing import Any

import jax.numpy as jnp
import numpy as np
import pytest

import pcbatch
from pcbatch.ir.stack import Push, Storage
from tests.oracles.plans import replanned


def term(marks, k, depth):
    if depth == 0 or k >= 8:
        return marks[k % 8]
    return factor(marks, k + 1, depth - 1) + marks[k % 8]


def factor(marks, k, depth):
    if marks[k % 8] > 3:
        return 2 * term(marks, k + 2, depth)
    return term(marks, k + 1, depth) - factor(marks, k + 3, depth - 1) if depth > 0 else 1


@pcbatch.batch
def handed_on(marks, n):
    """Recursion from outside with two arrays, one after the other."""
    return term(marks, 0, n) + 100 * factor(marks[::-1], 1, n)


def left(a, b, n):
    if n <= 0:
        return a - 2 * b
    return right(b, a, n - 1) + a


def right(a, b, n):
    if n <= 0:
        return a + b
    return left(a, b, n - 2) * 2 - left(a, b, n - 1) + b


@pcbatch.batch
def exchanged(a, b, n):
    """One of the functions exchanges its arguments."""
    return left(a, b, n)


def ping(total, step, n):
    if n == 0:
        return total
    return pong(total + step, step, n - 1) + step


def pong(total, step, n):
    if n == 0:
        return total
    step = step + 1 if n % 2 else step
    return ping(total * 2, step, n - 1) - step


@pcbatch.batch
def changed(total, step, n):
    """One of the functions changes its parameter."""
    return ping(total, step, n)


def given_back(n, x):
    if n == 0:
        return x
    return kept_back(n - 1, x)


def kept_back(n, x):
    if n == 0:
        return x + 1
    return given_back(n - 1, x) + kept_back(n - 1, x) * x


@pcbatch.batch
def result_too(n, x):
    """A parameter that is the result as well."""
    return given_back(n, x)


rng = np.random.default_rng(0)
MARKS = jnp.asarray(rng.integers(0, 7, (6, 8)))
SMALL = [jnp.asarray(rng.integers(low, high, 6)) for low, high in ((0, 9), (1, 5), (0, 7))]


@pytest.mark.parametrize(
    ("f", "args"),
    [
        (handed_on, (MARKS, SMALL[2])),
        (exchanged, tuple(SMALL)),
        (changed, tuple(SMALL)),
        (result_too, (SMALL[2], SMALL[0])),
    ],
)
def test_each_lane_is_the_plain_function(f: Any, args: tuple[Any, ...]) -> None:
    expected = [int(f.plain(*(one[k] for one in map(np.asarray, args)))) for k in range(6)]
    assert replanned(f)(*args).tolist() == expected


def test_no_call_saves_what_is_handed_on() -> None:
    programs = handed_on._programs
    program = programs.program(programs.prepare((MARKS, SMALL[2]), {})).stages.opt
    arrays = [name for name, var in program.vars.items() if var.type.shape == (8,)]
    assert all(program.vars[name].storage is Storage.REG for name in arrays)
    assert not any(isinstance(op, Push) and op.dst in arrays for op in program.ops)
