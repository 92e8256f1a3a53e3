"""Numbers that are known while compiling: when they stay Python values, when they become arrays, which do not fit."""

from __future__ import annotations

import enum
from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import pcbatch
from pcbatch import CompileError

N = np.array([-1, 0, 2], np.int32)
X = np.array([0.5, -1.0, 2.0], np.float32)


def initial_number(n, x):
    y = 300
    if n > 0:
        y = x
    return y


def moved_number(n, x):
    large = 300
    y = large
    if n > 0:
        y = x
    return y


def number_beyond_the_default(n):
    if n > 0:
        return 3_000_000_000
    return 0


def negative_number(n, x):
    if n > 0:
        return -1
    return x


def large_half(n, x):
    y = 70000
    if n > 0:
        y = x
    return y


@pcbatch.batch
def defaulted(n, k=300):
    if n > 3:
        return defaulted(n - 1, jnp.int8(1))
    return n


@pcbatch.batch
def narrow(n, k):
    if n > 3:
        return k
    return n


def passes_a_number(n, x):
    return narrow(n, x) + narrow(n, 300)


NARROW = [
    (initial_number, (N, N.astype(np.int8)), "y = 300", "jnp.int32(300)"),
    (moved_number, (N, N.astype(np.int8)), "y = large", "jnp.int32(300)"),
    (negative_number, (N, N.astype(np.uint8)), "return -1", "jnp.int32(-1)"),
    (number_beyond_the_default, (N,), "3_000_000_000", "jnp.uint32(3000000000)"),
    (large_half, (N, X.astype(np.float16)), "y = 70000", "jnp.float32(70000)"),
    (defaulted, (N,), "def defaulted", "jnp.int32(300)"),
    (passes_a_number, (N.astype(np.int8), N.astype(np.int8)), "narrow(n, 300)", "jnp.int32(300)"),
]


@pytest.mark.promotion("standard")
@pytest.mark.parametrize(("fn", "args", "line", "help"), NARROW, ids=lambda v: getattr(v, "__name__", ""))
def test_a_number_that_does_not_fit_is_refused(fn: Any, args: Any, line: str, help: str) -> None:
    with pytest.raises(CompileError) as info:
        pcbatch.batch(fn)(*args)
    (found,) = info.value.diagnostics
    assert found.code == "PCB312" and help in found.helps[0]
    assert line in str(info.value)


@pytest.mark.promotion("standard")
def test_the_help_for_numbers_works() -> None:
    def fixed(n, x):
        y = jnp.int32(300)
        if n > 0:
            y = x
        return y

    def unsigned(n):
        if n > 0:
            return jnp.uint32(3000000000)
        return 0

    assert pcbatch.batch(fixed)(N, N.astype(np.int8)).tolist() == [300, 300, 2]
    assert pcbatch.batch(unsigned)(N).tolist() == [0, 0, 3000000000]
    with jax.enable_x64(True):
        assert pcbatch.batch(number_beyond_the_default)(N).tolist() == [0, 0, 3000000000]
    huge = numbers_of(2**40)
    with pytest.raises(CompileError, match="turn 64-bit types on"):
        pcbatch.batch(huge)(N)
    with jax.enable_x64(True):
        assert pcbatch.batch(huge)(N).tolist() == [2**40] * 3


def numbers_of(value: Any) -> Callable[[Any], Any]:
    def constant(n):
        return value

    return constant


def test_what_a_loop_makes_of_a_number_takes_the_dtype_of_an_array() -> None:
    """Also where dtypes are never mixed: the number is converted, then one of the two is selected."""

    @pcbatch.batch
    def f(n, x):
        k = 1
        while n > 0:
            k = k + 1
            n -= 1
        y = k * 2
        if k > 2:
            y = x
        return y

    assert np.asarray(f(N, X)).tolist() == [2.0, 2.0, 2.0]


def test_zeros_of_both_signs_are_two_values() -> None:
    def signed(n):
        zero = 0.0 if n > 0 else -0.0
        return jnp.copysign(1.0, zero)

    assert pcbatch.batch(signed)(N).tolist() == [-1.0, -1.0, 1.0]


@pytest.mark.promotion("standard")
def test_static_values_are_told_apart_by_type() -> None:
    @pcbatch.batch(static_argnames="pair")
    def scaled(n, pair):
        return pair[0] * n, jnp.copysign(1.0, pair[1])

    dtypes = [str(scaled(N, (one, 0.0))[0].dtype) for one in (1, 1.0, 1j, 1)]
    assert dtypes == ["int32", "float32", "complex64", "int32"]
    signs = [scaled(N, (1, zero))[1].tolist() for zero in (0.0, -0.0)]
    assert signs == [[1.0] * 3, [-1.0] * 3]


def test_nan_as_a_static_value_compiles_once() -> None:
    batched = pcbatch.batch(lambda x, fill: x + fill, static_argnames="fill")
    for _ in range(3):
        assert np.isnan(batched(X, float("nan"))).all()
    assert len(batched._programs.cache) == 1


def test_a_static_parameter_that_calls_change_is_an_array() -> None:
    @pcbatch.batch(static_argnames="k")
    def adds(n, k):
        if k == 0:
            return n
        return adds(n + 1, k - 1)

    @pcbatch.batch(static_argnames="k")
    def sizes(n, k):
        if k == 0:
            return n
        return sizes(n + jnp.zeros(k, jnp.int32).sum(), k - 1)

    assert adds(N, 3).tolist() == [2, 3, 5]
    with pytest.raises(CompileError, match="PCB306"):
        sizes(N, 3)


class Mode(enum.IntEnum):
    SLOW = 1
    FAST = 2


def test_members_of_an_int_enum_are_integers() -> None:
    def speed(n):
        mode = Mode.SLOW
        if n > 0:
            mode = Mode.FAST
        return mode

    assert pcbatch.batch(speed)(N).tolist() == [1, 1, 2]
