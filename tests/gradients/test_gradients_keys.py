"""Products with a part of an array that lanes share, which a counter chooses: a visit is of lanes that agree in it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import pcbatch
from pcbatch.api.learn_schedule import sampled
from tests.oracles.plans import planned

pytestmark = pytest.mark.promotion("standard")
RNG = np.random.default_rng(0)
W = jnp.asarray(RNG.normal(size=(5, 16, 16)) / 4, jnp.float32)
X = jnp.asarray(RNG.normal(size=(6, 16)), jnp.float32)


def layers(x, n, w):  # type: ignore[no-untyped-def]
    """As many layers as the lane says, or fewer."""
    for i in range(5):
        x = jnp.tanh(w[i] @ x)
        if i == n or jnp.max(x) < 0.2:
            break
    return x


def staggered(x, n, w):  # type: ignore[no-untyped-def]
    """Layers with a loop of unequal length between them, so that lanes which meet are at different layers."""
    for i in range(5):
        x = jnp.tanh(w[i] @ x)
        k = 0
        while k < n:
            x = 0.9 * x + 0.05 * jnp.sin(x)
            k += 1
    return x


def expert(x, n, w):  # type: ignore[no-untyped-def]
    """The layer that the lane's data choose."""
    for _ in range(3):
        x = jnp.tanh(w[n] @ x)
        n = (n + jnp.argmax(x)) % 5
    return x


def keys(f: Callable[..., Any]) -> set[tuple[str, ...]]:
    program, _ = sampled(pcbatch.batch(f, in_axes=(0, 0, None)), (X, jnp.arange(6) % 5, W), {})
    return {code.keys for code in program.executable.smooth.layout.codes if code.keys}


def test_the_counter_is_a_key_and_data_are_none() -> None:
    assert len(keys(layers)) == 1
    assert len(keys(staggered)) == 1
    assert keys(expert) == set()


@pytest.mark.parametrize(
    "options", [{}, {"modes": pcbatch.Few(2)}, {"schedule": "earliest"}], ids=["", "few", "earliest"]
)
@pytest.mark.parametrize("f", [layers, staggered, expert], ids=lambda f: f.__name__)
def test_values_and_gradients(f: Callable[..., Any], options: dict[str, Any]) -> None:
    n = jnp.array([0, 3, 1, 4, 2, 3])
    batched = pcbatch.batch(f, **planned(in_axes=(0, 0, None), **options))

    def plain(x: Any, w: Any) -> Any:
        return jnp.stack([batched.plain(x[k], int(n[k]), w) for k in range(len(x))])

    def ours(x: Any, w: Any) -> Any:
        return batched(x, n, w)

    np.testing.assert_allclose(jax.jit(ours)(X, W), plain(X, W), rtol=1e-5, atol=1e-6)
    found, wanted = (
        jax.grad(lambda x, w, g=g: jnp.sum(jnp.sin(g(x, w))), (0, 1))(X, W) for g in (jax.jit(ours), plain)
    )
    for one, other in zip(found, wanted, strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-4, atol=1e-5)


def test_blocks_on_no_cycle_have_room_for_one_record() -> None:
    """The default room inside `jit` would be 256 records of each lane; too little would give NaN."""

    def two(x, w):  # type: ignore[no-untyped-def]
        for layer in w:
            x = jnp.tanh(layer @ x)
            if jnp.max(x) > 0.9:
                break
        return x

    batched = pcbatch.batch(two, in_axes=(0, None))
    weights = [W[0], W[1]]
    traced = jax.jit(jax.grad(lambda w: jnp.sum(batched(X, w)))).lower(weights).as_text()
    assert f"{6 * 257}x" not in traced
    found = jax.jit(jax.grad(lambda w: jnp.sum(batched(X, w))))(weights)
    wanted = jax.grad(lambda w: sum(jnp.sum(batched.plain(x, w)) for x in X))(weights)
    for one, other in zip(found, wanted, strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-4, atol=1e-5)
