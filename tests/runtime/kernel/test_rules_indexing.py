"""Reads and writes at indices of the program, in a kernel: every mode, in and out of bounds, one lane and many."""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax import lax

from pcbatch.runtime.kernel.rules import check
from tests.runtime.kernel.arrays import floats, ints, odd
from tests.runtime.kernel.kernels import same

pytestmark = pytest.mark.share(16)

LANES = 4


def indices(*shape: int, seed: int = 3) -> np.ndarray:
    """In and out of the bounds of axes of 5."""
    return ints(*shape, low=-9, high=9, seed=seed)


X, ROWS = odd(LANES, 5), odd(LANES, 3, 5)
I, J, MANY, OTHERS = (indices(*s, seed=k) for k, s in enumerate([(LANES,), (LANES,), (LANES, 3), (LANES, 3)]))

READS: dict[str, tuple[Any, ...]] = {
    "element": (lambda x, i: x[i], X, I),
    "element_of_rows": (lambda x, i, j: x[i, j], ROWS, I, J),
    "row": (lambda x, i: (x[i], x[:, i], x[i, 1:3]), ROWS, I),
    "elements": (lambda x, i: x[i], X, MANY),
    "rows": (lambda x, i: (x[i], x[:, i]), ROWS, MANY),
    "pairs": (lambda x, i, j: x[i, j], ROWS, MANY, OTHERS),
    "outer": (lambda x, i, j: x[i[:, None], j[None, :]], ROWS, MANY, OTHERS),
    "diagonal": (lambda x: (jnp.diag(x[:, :3]), jnp.diagonal(x)), floats(LANES, 3, 5)),
    "take": (lambda x, i: (jnp.take(x, i, mode="wrap"), jnp.take_along_axis(x, i % 5, 0)), X, MANY),
    "dynamic_slice": (lambda x, i: lax.dynamic_slice(x, (i,), (3,)), X, I),
    "dynamic_slice_of_rows": (lambda x, i, j: lax.dynamic_slice(x, (i, j), (2, 3)), ROWS, I, J),
    "dynamic_row": (lambda x, i: lax.dynamic_index_in_dim(x, i, 0, keepdims=False), ROWS, I),
}


@pytest.mark.parametrize("name", READS)
def test_reads(name: str) -> None:
    fn, *args = READS[name]
    same(jax.vmap(fn), *args)
    same(fn, *(x[0] for x in args))  # one lane alone


@pytest.mark.parametrize("mode", ["clip", "fill", "promise_in_bounds"])
@pytest.mark.parametrize("dtype", [np.float32, np.int32, np.uint32, np.int8, np.bool_])
def test_modes_of_reads(mode: str, dtype: Any) -> None:
    x = ints(LANES, 5, low=0).astype(dtype)
    same(jax.vmap(lambda x, i: x.at[i].get(mode=mode)), x, I)
    same(jax.vmap(lambda x, i: x.at[i].get(mode=mode)), x, MANY)
    same(jax.vmap(lambda x, i: x.at[i].get(mode="fill", fill_value=3)), x.astype(np.int32), MANY)


@pytest.mark.parametrize("dtype", [np.int8, np.uint8, np.uint32, np.int16])
def test_types_of_indices(dtype: Any) -> None:
    x, i = odd(LANES, 5), ints(LANES, 3, low=0, high=9).astype(dtype)
    same(jax.vmap(lambda x, i: (x[i], x.at[i].get(mode="clip"), x.at[i].set(7.0))), x, i)
    same(
        lambda x, i: x.at[i].get(mode="clip"),
        odd(200 if dtype != np.int8 else 100),
        ints(3, low=0, high=127).astype(dtype),
    )


def test_indices_of_64_bits() -> None:
    with jax.enable_x64(True):
        i = np.array([0, 4, -1, 1 << 40, -(1 << 40)], np.int64)
        same(lambda x, i: (x.at[i].get(mode="clip"), x.at[i].set(7.0, mode="clip")), X[0], i)
        same(lambda x, i: (x.at[i].get(mode="promise_in_bounds"), x.at[i].set(7.0)), X[0], i)


def test_an_array_that_lanes_share() -> None:
    same(jax.vmap(lambda x, i: x[i], in_axes=(None, 0)), odd(7, 3), I)
    table = jnp.asarray(odd(20))
    same(jax.vmap(lambda i: table[i]), I)


WRITES: dict[str, tuple[Any, ...]] = {
    "element": (lambda x, i, u: x.at[i].set(u), X, I, floats(LANES)),
    "element_of_rows": (lambda x, i, j, u: x.at[i, j].set(u), ROWS, I, J, floats(LANES)),
    "row": (lambda x, i, u: x.at[i].set(u), ROWS, I, floats(LANES, 5)),
    "column": (lambda x, i, u: x.at[:, i].set(u), ROWS, I, floats(LANES, 3)),
    "elements": (lambda x, i, u: x.at[i].set(u), X, MANY, floats(LANES, 3)),
    "pairs": (lambda x, i, j, u: x.at[i, j].set(u), ROWS, MANY, OTHERS, floats(LANES, 3)),
    "range": (lambda x, u: x.at[1:3].set(u), X, floats(LANES, 2)),
    "strides": (lambda x, u: x.at[::2].set(u), X, floats(LANES, 3)),
    "one_number": (lambda x, i: (x.at[i].set(1.0), x.at[:].set(2.0), x.at[1].set(-0.0)), X, I),
    "update_slice": (lambda x, u, i: lax.dynamic_update_slice(x, u, (i,)), X, odd(LANES, 3), I),
    "update_rows": (lambda x, u, i, j: lax.dynamic_update_slice(x, u, (i, j)), ROWS, odd(LANES, 2, 2), I, J),
    "two_axes_of_places": (lambda x, i, u: x.at[i].set(u), X, indices(LANES, 3, 2), floats(LANES, 3, 2)),
}


@pytest.mark.parametrize("name", WRITES)
def test_writes(name: str) -> None:
    fn, *args = WRITES[name]
    same(jax.vmap(fn), *args)
    same(fn, *(x[0] for x in args))


@pytest.mark.parametrize("mode", ["clip", "drop", "promise_in_bounds"])
def test_modes_of_writes(mode: str) -> None:
    u = floats(LANES, 3)
    same(jax.vmap(lambda x, i, u: x.at[i].set(u, mode=mode)), X, MANY, u)
    same(jax.vmap(lambda x, i, u: x.at[i].add(u, mode=mode)), ints(LANES, 5), MANY, ints(LANES, 3))
    same(jax.vmap(lambda x, i, u: x.at[i].set(u, mode=mode)), ROWS, I, odd(LANES, 5))


@pytest.mark.parametrize("places", [1, 3, 7])
@pytest.mark.parametrize("op", ["add", "multiply", "min", "max", "subtract"])
def test_arithmetic_at_places(op: str, places: int) -> None:
    """Also several times at one place, and more places than are written without a loop."""
    i = indices(LANES, places)
    fn = jax.vmap(lambda x, i, u: getattr(x.at[i], op)(u))
    same(fn, ints(LANES, 5), i, ints(LANES, places))
    same(fn, floats(LANES, 5), i, floats(LANES, places), tolerance=1e-5)


def test_short_floats() -> None:
    x, u = jnp.asarray(floats(LANES, 5), jnp.bfloat16), jnp.asarray(floats(LANES, 3), jnp.bfloat16)
    same(jax.vmap(lambda x, i, u: (x[i], x.at[i].set(u))), x, MANY, u)


def test_sums_of_segments() -> None:
    k = ints(20, low=0, high=7)
    same(
        lambda x, k: (jax.ops.segment_sum(x, k, 5), jnp.bincount(k, length=6), jax.ops.segment_max(x, k, 5)),
        ints(20),
        k,
    )


def test_searches() -> None:
    def fn(x: Any, q: Any) -> Any:
        s = jnp.sort(x)
        return jnp.searchsorted(s, q), jnp.nonzero(x > 0, size=3, fill_value=-1), jnp.interp(q, s, x)

    same(jax.vmap(fn), floats(LANES, 5), floats(LANES), tolerance=1e-5)


def test_gradients() -> None:
    fn = jax.grad(lambda x, i: jnp.sum(jnp.sin(x[i]) * x[0]) + lax.dynamic_slice(x, (i[0],), (2,)).sum())
    same(jax.vmap(fn), floats(LANES, 5), MANY, tolerance=1e-5)


def test_refused() -> None:
    def fn(x: Any, i: Any) -> Any:
        return lax.scatter_apply(x, i, lambda y: y * 2, lax.ScatterDimensionNumbers((), (0,), (0,)), update_shape=())

    refused = check(jax.make_jaxpr(fn)(np.zeros(5, np.float32), np.zeros(1, np.int32)).jaxpr)
    assert [u.reason for u in refused] == ["a scatter with a function of its own"]
    many = check(jax.make_jaxpr(lambda x, i: x.at[i].set(0.0))(np.zeros(5, np.float32), np.zeros(5000, np.int32)).jaxpr)
    assert [u.reason for u in many] == ["writes at 5000 places"]
