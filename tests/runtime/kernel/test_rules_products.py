"""Products of matrices and vectors in a kernel."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from tests.runtime.kernel.arrays import floats, ints
from tests.runtime.kernel.kernels import lower, same

pytestmark = pytest.mark.share(16)

SIZES = [(4, 4, 4), (3, 5, 7), (16, 16, 16), (16, 20, 33), (1, 5, 1)]


@pytest.mark.parametrize(("n", "k", "m"), SIZES)
def test_matrices(n: int, k: int, m: int) -> None:
    x, y = floats(n, k), floats(k, m)
    same(lambda x, y: (x @ y, y.T @ x.T, x @ x.T, x[0] @ y, y[:, 0] @ x[0]), x, y, tolerance=1e-5)
    same(lambda x, y: (x @ y, x[0] @ y), ints(n, k), ints(k, m))


def test_the_matrix_unit_takes_large_ones_in_full_precision() -> None:
    text = lower(lambda x, y: x @ y, floats(16, 20), floats(20, 33))
    assert "tt.dot" in text or "triton" in text
    same(lambda x, y: x @ y, floats(16, 64), floats(64, 32), tolerance=1e-5)


def test_batches() -> None:
    x, y = floats(4, 5, 3), floats(4, 3, 5)
    fn = jax.vmap(lambda x, y: (x @ y, jnp.outer(x[0], y[0]), jnp.einsum("ij,ji->", x, y), jnp.dot(x[0], y[:, 0])))
    same(fn, x, y, tolerance=1e-5)
    same(lambda x, y: jnp.einsum("aij,bji->abi", x, y), x, y, tolerance=1e-5)
    same(lambda x, y: jnp.tensordot(x, y, ((1, 2), (2, 1))), x, y, tolerance=1e-5)


def test_lanes_by_a_shared_matrix() -> None:
    w = floats(20, 20, seed=2)
    same(jax.vmap(lambda x: w @ x), floats(16, 20), tolerance=1e-5)
    same(jax.vmap(lambda x: w @ x, in_axes=0), floats(4, 20), tolerance=1e-5)
    same(jax.vmap(lambda x: w @ x), floats(8, 20, 3), tolerance=1e-5)


def test_many_products_are_summed_in_turn() -> None:
    x, y = ints(32, 100), ints(100, 20)
    same(lambda x, y: x @ y, x, y)


def test_infinities_in_padding_do_not_spread() -> None:
    """The test's arrays hold NaN and infinities beyond their lengths; zero times these is NaN."""
    same(lambda x, y: x @ y, np.ones((3, 5), np.float32), np.ones((5, 7), np.float32))
    same(lambda x, y: x @ y, np.ones((17, 17), np.float32), np.ones((17, 17), np.float32))


def test_types() -> None:
    x = floats(5, 3)
    same(lambda x: x @ x.T, jnp.asarray(x, jnp.bfloat16), tolerance=2e-2)
    same(lambda x: jnp.matmul(x, x.T, preferred_element_type=jnp.float32), jnp.asarray(x, jnp.bfloat16), tolerance=1e-5)
    same(lambda x: jnp.matmul(x, x.T, preferred_element_type=jnp.int32), ints(5, 3, dtype=np.int8))
    with jax.enable_x64(True):
        same(lambda x: (x @ x.T, x.T @ x), floats(20, 20).astype(np.float64), tolerance=1e-13)
