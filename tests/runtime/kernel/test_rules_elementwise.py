"""Primitives of single elements in a kernel: to the bit where XLA is exact, also where Triton's own mean another."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax import lax

from tests.runtime.kernel.arrays import SPECIAL, floats, ints
from tests.runtime.kernel.kernels import lower, same

pytestmark = pytest.mark.share(16)


def pairs() -> tuple[np.ndarray, np.ndarray]:
    x, y = np.meshgrid(np.float32(SPECIAL), np.float32(SPECIAL))
    return x, y


EXACT_UNARY = {
    "neg": lax.neg,
    "abs": lax.abs,
    "sign": lax.sign,
    "floor": lax.floor,
    "ceil": lax.ceil,
    "round_even": lambda x: lax.round(x, lax.RoundingMethod.TO_NEAREST_EVEN),
    "round_away": lambda x: lax.round(x, lax.RoundingMethod.AWAY_FROM_ZERO),
    "is_finite": lax.is_finite,
    "square": lax.square,
    "cube": lambda x: lax.integer_pow(x, 3),
    "to_int32": lambda x: x.astype(jnp.int32),
    "to_uint32": lambda x: x.astype(jnp.uint32),
    "to_int8": lambda x: x.astype(jnp.int8),
    "to_uint8": lambda x: x.astype(jnp.uint8),
    "to_bool": lambda x: x.astype(jnp.bool_),
    "to_float16": lambda x: x.astype(jnp.float16),
    "to_bfloat16": lambda x: x.astype(jnp.bfloat16),
    "reduce_precision": lambda x: lax.reduce_precision(x, 8, 7),
    "bits": lambda x: lax.bitcast_convert_type(x, jnp.uint32),
    "bytes": lambda x: lax.bitcast_convert_type(x, jnp.uint8),
    "from_bytes": lambda x: lax.bitcast_convert_type(lax.bitcast_convert_type(x, jnp.uint8), jnp.float32),
    "copy": lambda x: lax.optimization_barrier(x),
}


@pytest.mark.parametrize("name", EXACT_UNARY)
def test_floats_to_the_bit(name: str) -> None:
    same(EXACT_UNARY[name], np.float32(SPECIAL))


@pytest.mark.parametrize("shape", [(), (1,), (5,), (3, 6)])
def test_shapes(shape: tuple[int, ...]) -> None:
    same(lambda x, y: (-x, jnp.maximum(x, y), x * y, jnp.where(x > y, x, y)), floats(*shape), floats(*shape, seed=1))


EXACT_BINARY = {
    "max": lax.max,
    "min": lax.min,
    "rem": lax.rem,
    "add": lax.add,
    "sub": lax.sub,
    "mul": lax.mul,
    "eq": lax.eq,
    "ne": lax.ne,
    "lt": lax.lt,
    "le": lax.le,
    "gt": lax.gt,
    "ge": lax.ge,
    "nextafter": lax.nextafter,
}


@pytest.mark.parametrize("name", EXACT_BINARY)
def test_pairs_of_special_floats(name: str) -> None:
    """NaN goes through maxima and minima, and zeros of either sign compare equal."""
    x, y = pairs()
    if name in ("max", "min"):  # which of two zeros comes out is not defined
        y = np.where((x == 0) & (y == 0), x, y)
    fn = EXACT_BINARY[name]
    clean = lambda z: jnp.where(z != z, jnp.float32(jnp.nan), z) if z.dtype == jnp.float32 else z  # NaN of one kind
    same(lambda x, y: clean(fn(x, y)), x, y)


def test_remainders_are_exact() -> None:
    """Quotients beyond the precision of a float."""
    x, y = floats(40) * 1e20, floats(40, seed=1) * 1e-3
    same(lambda x, y: (lax.rem(x, y), lax.rem(y, x), lax.rem(x, jnp.float32(0.7) * x)), x, y)
    with jax.enable_x64(True):
        same(lax.rem, x.astype(np.float64) * 1e200, y.astype(np.float64) * 1e-100)


def test_a_clamp_keeps_nan() -> None:
    def clamped(x: Any, low: Any, high: Any) -> Any:
        y = lax.clamp(low, x, high)
        return jnp.isnan(y), jnp.where(jnp.isnan(y), 0, y)  # XLA gives one NaN or another

    x = np.float32(SPECIAL)
    same(lambda x: clamped(x, jnp.float32(-1), jnp.float32(2)), x)
    same(lambda x, y: clamped(x, y, y + 1), x, floats(16))


NARROW = [np.int8, np.uint8, np.int16, np.uint16, np.int32, np.uint32]
INTEGER = {
    "div": lax.div,
    "rem": lax.rem,
    "max": lax.max,
    "min": lax.min,
    "lt": lax.lt,
    "shift_left": lax.shift_left,
    "shift_right_logical": lax.shift_right_logical,
    "shift_right_arithmetic": lax.shift_right_arithmetic,
    "and_or_xor": lambda x, y: (x & y, x | y, x ^ y, ~x),
    "arithmetic": lambda x, y: (x + y, x - y, x * y, lax.neg(x)),
    "counts": lambda x, y: (lax.population_count(x), lax.clz(y)),
    "sign": lambda x, y: lax.sign(x),
    "converted": lambda x, y: (x.astype(jnp.float32), x.astype(jnp.int8), x.astype(jnp.uint32), x.astype(jnp.bool_)),
}


def edge_integers(dtype: Any) -> tuple[np.ndarray, np.ndarray]:
    """Zero divisors, the least number by -1, and shifts by too much."""
    info = np.iinfo(dtype)
    values = np.array([info.min, info.min + 1, 0, 1, 3, 7, 9, 33, 40, info.max], object).astype(dtype)
    if info.min < 0:
        values = np.append(values, np.array([-1, -5], dtype))
    x, y = np.meshgrid(values, values)
    return x, y


@pytest.mark.parametrize("dtype", NARROW)
@pytest.mark.parametrize("name", INTEGER)
def test_integers(name: str, dtype: Any) -> None:
    same(INTEGER[name], *edge_integers(dtype))


@pytest.mark.parametrize("name", INTEGER)
def test_long_integers(name: str) -> None:
    with jax.enable_x64(True):
        for dtype in (np.int64, np.uint64):
            same(INTEGER[name], *edge_integers(dtype))


def test_truth_values() -> None:
    x, y = np.array([0, 0, 1, 1, 0], bool), np.array([0, 1, 0, 1, 1], bool)
    same(lambda x, y: (x & y, x | y, x ^ y, ~x, lax.max(x, y), lax.min(x, y), x == y, x.astype(jnp.float32)), x, y)


def test_selections() -> None:
    x, y, k = np.float32(SPECIAL), floats(16), ints(16, low=0, high=3)
    same(lambda x, y, k: (lax.select_n(k, x, y, -x), lax.select_n(k > 1, x, y), lax.select_n(k[0] > 0, x, y)), x, y, k)


APPROXIMATE = """acos acosh asin asinh atan atanh cbrt cos cosh exp exp2 expm1 log log1p logistic rsqrt sin sinh sqrt
tan tanh""".split()


@pytest.mark.parametrize("name", APPROXIMATE)
def test_functions_of_floats(name: str) -> None:
    fn: Callable[..., Any] = getattr(lax, name)
    same(fn, abs(floats(3, 5)) + np.float32(0.5 if name != "acosh" else 1.5), tolerance=1e-6)
    with jax.enable_x64(True):
        same(fn, abs(floats(3, 5)).astype(np.float64) + 1.1, tolerance=1e-14)


@pytest.mark.parametrize("dtype", [jnp.float16, jnp.bfloat16])
def test_short_floats(dtype: Any) -> None:
    """Computed in 32 bits and rounded, as XLA does."""
    x, y = jnp.asarray(floats(3, 5), dtype), jnp.asarray(floats(3, 5, seed=1), dtype)
    same(lambda x, y: (x + y, x * y, x - y, x / y, jnp.maximum(x, y), -x, abs(x), x < y, x.astype(jnp.int32)), x, y)
    same(lambda x: (lax.exp(x), lax.tanh(x), lax.sin(x)), x, tolerance=1e-2)


def test_powers() -> None:
    x, y, n = abs(floats(9)), floats(9), ints(9, low=-3, high=4)
    same(
        lambda x, y, n: (lax.pow(x, y), lax.pow(x, n), lax.integer_pow(x, -2), x**0.5, lax.atan2(y, x)),
        x,
        y,
        n,
        tolerance=1e-6,
    )


def test_numbers_alone() -> None:
    """What is computed of numbers only: most lowerings to Triton take no number of Python as an operand."""
    same(
        lambda x: x + lax.bitcast_convert_type(jnp.float32(3), jnp.int32) + lax.population_count(jnp.int32(7)), ints(3)
    )
    same(lambda x: x + lax.sign(jnp.float32(-3)) + lax.square(jnp.float32(2)) + lax.rem(x, jnp.float32(0.7)), floats(3))


def test_double_precision() -> None:
    with jax.enable_x64(True):
        x, y = floats(7).astype(np.float64), floats(7, seed=1).astype(np.float64)
        same(
            lambda x, y: (x + y, -x, lax.round(x), jnp.maximum(x, y), x.astype(jnp.int64), x.astype(jnp.float32)), x, y
        )


@pytest.mark.parametrize("platform", ["cuda", "rocm"])
def test_lowered_for(platform: str) -> None:
    assert "triton" in lower(
        lambda x: (lax.round(-x), jnp.mod(x, 0.3), jnp.maximum(x, 1.0)), floats(5), platform=platform
    )
