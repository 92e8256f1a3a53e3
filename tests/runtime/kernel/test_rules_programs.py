"""Random programs of many rules: integers, and bits of floats that are moved, are those of plain JAX."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax import lax

from tests.runtime.kernel.arrays import ints
from tests.runtime.kernel.kernels import run, same

pytestmark = pytest.mark.share(16)

Vector = Any
STEPS: list[Callable[[Vector, Vector, Any], Vector]] = [
    lambda x, y, k: jnp.concatenate([x, y])[::2],
    lambda x, y, k: x[::-1],
    lambda x, y, k: jnp.sort(x),
    lambda x, y, k: x[jnp.argsort(x % 7)],
    lambda x, y, k: jnp.roll(x, k),
    lambda x, y, k: x.at[k].set(y[0]),
    lambda x, y, k: x.at[y].add(1),
    lambda x, y, k: x[y % 5] + k,
    lambda x, y, k: jnp.cumsum(x),
    lambda x, y, k: lax.cummax(x, reverse=True),
    lambda x, y, k: jnp.where(x > y.sum(), x, -x),
    lambda x, y, k: x // jnp.where(y == 0, 0, y)[:1],
    lambda x, y, k: lax.rem(x, y.max()),
    lambda x, y, k: x << (k & 3),
    lambda x, y, k: jnp.outer(x, y[:3]).reshape(-1)[: x.size + 1],
    lambda x, y, k: jnp.outer(x, y[:2]) @ jnp.ones(2, jnp.int32),
    lambda x, y, k: lax.fori_loop(0, k & 3, lambda i, c: c * 3 + i, x),
    lambda x, y, k: lax.cond(k > 0, lambda: x + 1, lambda: x ^ 5),
    lambda x, y, k: lax.scan(lambda c, a: (c + a, c), k, x)[1],
    lambda x, y, k: jnp.pad(x, (1, 2), constant_values=-3)[: x.size],
    lambda x, y, k: lax.dynamic_slice(x, (k,), (max(1, x.size - 1),)),
    lambda x, y, k: jnp.repeat(x, 2)[1 : x.size + 1],
    lambda x, y, k: jnp.stack([x, x + 1], 1).reshape(-1)[: x.size],
    lambda x, y, k: jnp.full_like(x, x.argmin() + lax.population_count(k)),
    lambda x, y, k: lax.bitcast_convert_type(lax.bitcast_convert_type(x, jnp.float32)[::-1], jnp.int32),
    lambda x, y, k: lax.top_k(x, x.size)[1].astype(jnp.int32),
]


def program(seed: int, length: int = 8) -> Callable[..., Any]:
    """A function of one lane that takes some of the steps; arrays have 5 to 9 elements."""
    r = np.random.default_rng(seed)
    steps = [STEPS[i] for i in r.integers(0, len(STEPS), length)]

    def fn(x: Vector, y: Vector, k: Any) -> Any:
        for step in steps:
            new = step(x, y, k)
            x, y = (new if new.size >= 5 else jnp.concatenate([new, x])[:9]), x
            x, k = x[:9], k + x[0] % 5
        return x, y, k

    return fn


@pytest.mark.parametrize("seed", range(24))
def test_programs(seed: int) -> None:
    lanes = [3, 4][seed % 2]
    args = (
        ints(lanes, 5, low=-9, high=9, seed=seed),
        ints(lanes, 7, low=-9, high=9, seed=seed + 1),
        ints(lanes, seed=seed),
    )
    same(jax.vmap(program(seed)), *args)


@pytest.mark.parametrize("step", range(len(STEPS)))
def test_each_step_alone(step: int) -> None:
    fn = STEPS[step]
    same(fn, ints(6, low=-9, high=9), ints(7, low=-9, high=9, seed=1), np.int32(2))


def test_junk_changes_nothing() -> None:
    """Two fillings of what lies beyond the lengths, one result."""
    from tests.runtime.kernel import kernels

    fn, args = jax.vmap(program(3)), (ints(3, 5), ints(3, 7), ints(3))
    first = run(fn, *args)
    filled = kernels.junk
    try:
        kernels.junk = lambda x, shape: np.pad(x, [(0, m - n) for n, m in zip(x.shape, shape, strict=True)])
        second = run(fn, *args)
    finally:
        kernels.junk = filled
    assert all(np.array_equal(a, b) for a, b in zip(first, second, strict=True))
