"""Reductions and cumulative operations in a kernel: nothing beyond an axis is counted, NaN comes through."""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax import lax

from tests.runtime.kernel.arrays import SPECIAL, floats, ints
from tests.runtime.kernel.kernels import same

pytestmark = pytest.mark.share(16)

BOTH = [(4, 8), (3, 5), (1, 1), (7,), (2, 3, 5)]
DTYPES = [np.int32, np.uint32, np.int8, np.uint8]

EXACT = {
    "sum": lambda x, axis: jnp.sum(x, axis, dtype=x.dtype),
    "max": lambda x, axis: jnp.max(x, axis),
    "min": lambda x, axis: jnp.min(x, axis),
    "argmax": lambda x, axis: jnp.argmax(x, axis),
    "argmin": lambda x, axis: jnp.argmin(x, axis),
    "prod": lambda x, axis: jnp.prod(x, axis, dtype=x.dtype),
    "or": lambda x, axis: jnp.bitwise_or.reduce(x, axis=axis),
    "and": lambda x, axis: jnp.bitwise_and.reduce(x, axis=axis),
    "xor": lambda x, axis: jnp.bitwise_xor.reduce(x, axis=axis),
    "any": lambda x, axis: jnp.any(x > 0, axis),
    "all": lambda x, axis: jnp.all(x < 0, axis),
    "parity": lambda x, axis: jnp.logical_xor.reduce(x > 0, axis=axis),
}


@pytest.mark.parametrize("shape", BOTH)
@pytest.mark.parametrize("name", EXACT)
def test_integers(name: str, shape: tuple[int, ...]) -> None:
    fn, x = EXACT[name], ints(*shape)
    same(lambda x: (fn(x, 0), fn(x, -1), fn(-abs(x) - 1, 0)), x)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("name", EXACT)
def test_types(name: str, dtype: Any) -> None:
    fn = EXACT[name]
    same(lambda x: fn(x, -1), ints(3, 5, dtype=dtype, low=-100, high=100))


@pytest.mark.parametrize("name", EXACT)
def test_types_of_64_bits(name: str) -> None:
    fn = EXACT[name]
    with jax.enable_x64(True):
        for dtype in (np.int64, np.uint64):
            same(lambda x: fn(x, -1), ints(3, 5, low=0).astype(dtype) << np.array(40, dtype))


@pytest.mark.parametrize("shape", BOTH)
def test_floats(shape: tuple[int, ...]) -> None:
    x = floats(*shape)
    same(lambda x: (x.sum(), x.sum(0), x.sum(-1), x.prod(-1), x.mean(), x.std(-1), x.var()), x, tolerance=1e-5)
    same(lambda x: (x.max(), x.min(0), x.max(-1), x.argmax(0), x.argmin(-1), (x * 1e30 * 1e30).max()), x)


@pytest.mark.parametrize("fn", [jnp.max, jnp.min, jnp.argmax, jnp.argmin])
def test_extremes_of_special_floats(fn: Any) -> None:
    """NaN, which Triton's own reduction drops, infinities, and the first of several."""
    x = np.float32(SPECIAL)
    clean = lambda z: jnp.where(z != z, jnp.nan, z) if z.dtype == jnp.float32 else z
    same(lambda x: (clean(fn(x)), fn(jnp.where(x != x, -jnp.inf, x)), fn(jnp.where(x != x, jnp.inf, x))), x)
    same(lambda x: (fn(jnp.full(3, -jnp.inf)), fn(jnp.full(3, jnp.inf)), fn(x[:9])), x)


@pytest.mark.parametrize("fn", [jnp.max, jnp.min])
@pytest.mark.parametrize("zeros", [[-0.0] * 3, [-0.0] * 4, [0.0] * 4, [0.0, -0.0, 0.0, 0.0], [-0.0, 0.0]], ids=str)
def test_signs_of_zeros(fn: Any, zeros: list[float]) -> None:
    same(fn, np.array(zeros, np.float32))


def test_empty() -> None:
    same(lambda x: (x[:0].sum(), x[:0].prod(), jnp.any(x[:0] > 0), jnp.all(x[:0] > 0)), floats(3))


@pytest.mark.parametrize("reverse", [False, True])
@pytest.mark.parametrize("shape", [(8,), (5,), (3, 5), (1,)])
def test_cumulative(shape: tuple[int, ...], reverse: bool) -> None:
    axis = len(shape) - 1
    x = ints(*shape)
    for fn in (lax.cumsum, lax.cumprod, lax.cummax, lax.cummin):
        same(lambda x: fn(x, axis, reverse=reverse), x)
    clean = lambda z: jnp.where(z != z, jnp.nan, z)
    y = np.resize(np.float32(SPECIAL), shape)
    same(lambda y: (clean(lax.cummax(y, axis, reverse=reverse)), clean(lax.cummin(y, 0, reverse=reverse))), y)
    z = floats(*shape)
    same(lambda z: (lax.cumsum(z, axis, reverse=reverse), lax.cumprod(z, 0, reverse=reverse)), z, tolerance=1e-5)
    same(lambda z: lax.cumlogsumexp(z, axis, reverse=reverse), z, tolerance=1e-5)


def test_cumulative_exponents_of_infinities() -> None:
    x = np.float32([-np.inf, -np.inf, 1.0, np.inf, 2.0, -np.inf])
    same(lambda x: (lax.cumlogsumexp(x), lax.cumlogsumexp(x, reverse=True)), x, tolerance=1e-6)


def test_statistics() -> None:
    def fn(x: Any) -> Any:
        return jax.nn.softmax(x), jax.nn.logsumexp(x), jnp.median(x), jnp.percentile(x, 30.0), jnp.linalg.norm(x)

    same(jax.vmap(fn), floats(4, 5), tolerance=1e-5)


def test_short_floats() -> None:
    x = jnp.asarray(floats(3, 5), jnp.bfloat16)
    same(lambda x: (x.max(1), x.min(0), x.argmax(1), lax.cummax(x, 1)), x)
    same(lambda x: (x.sum(1), x.prod(0)), x, tolerance=2e-2)
