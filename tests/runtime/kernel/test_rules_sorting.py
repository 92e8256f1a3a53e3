"""Sorting in a kernel: JAX's order of NaN and zeros, stable, of one lane's short axis."""

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


@pytest.mark.parametrize("shape", [(8,), (5,), (3, 6), (2, 3, 5), (1,)])
def test_sort(shape: tuple[int, ...]) -> None:
    x = ints(*shape) % 7
    same(lambda x: (jnp.sort(x, -1), jnp.argsort(x, -1), jnp.sort(x, 0), jnp.sort(x, -1, descending=True)), x)
    same(lambda x: (jnp.sort(x, -1), jnp.argsort(x, 0)), floats(*shape))


def test_special_floats() -> None:
    x = np.float32(SPECIAL)
    clean = lambda z: jnp.where(z != z, jnp.nan, z)
    same(lambda x: (clean(jnp.sort(x)), jnp.argsort(x), clean(jnp.sort(x, descending=True))), x)
    same(lambda x: lax.top_k(jnp.where(x != x, jnp.inf, x), 9), x)
    same(
        lambda x, y: (lax.lt_to_p.bind(x, y), lax.le_to_p.bind(x, y)) if hasattr(lax, "lt_to_p") else x,
        x,
        x[::-1].copy(),
    )


def test_several_operands() -> None:
    a, b, c = ints(11) % 3, ints(11, seed=1) % 3, floats(11)
    for keys in (1, 2, 3):
        same(lambda a, b, c: lax.sort((a, b, c), num_keys=keys), a, b, c)
    same(lambda a, b, c: (jnp.lexsort((a, b)), c[jnp.lexsort((c, a))]), a, b, c)


@pytest.mark.parametrize("dtype", [np.int8, np.uint8, np.uint32, np.bool_])
def test_types(dtype: Any) -> None:
    same(lambda x: (jnp.sort(x), jnp.argsort(x)), ints(3, 6, low=0).astype(dtype))


def test_long_axes_are_sorted_in_turn() -> None:
    same(lambda x: (jnp.sort(x, 1), jnp.argsort(x, 1)), floats(8, 100))


def test_top_k() -> None:
    same(jax.vmap(lambda x: lax.top_k(x, 3)), ints(4, 7) % 4)
    same(lambda x: lax.top_k(x, 1), floats(3, 5))


def test_orders() -> None:
    same(
        jax.vmap(lambda x: (jnp.unique(x, size=4, fill_value=-1), jnp.median(x), x[jnp.argsort(-x)[:2]])),
        ints(4, 6) % 5,
    )
