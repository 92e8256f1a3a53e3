"""Keys of XLA's own generators: every lane draws with its own, whatever the other lanes are."""

from __future__ import annotations

from typing import Any

import jax
import jax.extend.core as jex
import jax.numpy as jnp
import numpy as np
import pytest

import pcbatch
from pcbatch.lowering.jaxpr_passes.rng_by_lane import _Apart
from tests.oracles.plans import planned

pytestmark = pytest.mark.share(3)

IMPLS = pytest.mark.parametrize("impl", ["rbg", "unsafe_rbg"])
WAYS: tuple[dict[str, Any], ...] = ({}, {"strategy": "local"}, {"emitter": "port"}, {"modes": pcbatch.Few(2)})


def draws(key, n):
    bits = jax.random.bits(key)
    for k in range(n):
        key, sub = jax.random.split(key)
        bits = bits ^ jax.random.bits(jax.random.fold_in(sub, k))
    return bits, key


def keys(impl: str, lanes: int) -> jax.Array:
    return jnp.stack([jax.random.key(seed, impl=impl) for seed in range(lanes)])


@IMPLS
@pytest.mark.parametrize("options", WAYS, ids=str)
def test_lanes_draw_what_the_plain_function_draws(impl: str, options: dict[str, Any]) -> None:
    given, n = keys(impl, 5), np.array([3, 0, 2, 4, 1], np.int32)
    bits, ends = pcbatch.batch(draws, **planned(**options))(given, n)
    for lane in range(5):
        want, end = draws(given[lane], int(n[lane]))
        assert bits[lane] == want and bool(jnp.all(ends[lane] == end))


@IMPLS
def test_other_lanes_change_nothing(impl: str) -> None:
    given = keys(impl, 4)
    f = pcbatch.batch(draws)
    all_, _ = f(given, np.full(4, 3, np.int32))
    last, _ = f(given[::-1], np.array([3, 0, 0, 0], np.int32))
    assert last[0] == all_[3]


@IMPLS
def test_a_shared_key_draws_once(impl: str) -> None:
    key, n = jax.random.key(7, impl=impl), np.arange(3, dtype=np.int32)
    bits, _ = pcbatch.batch(draws, in_axes=(None, 0))(key, n)
    assert [int(b) for b in bits] == [int(draws(key, int(k))[0]) for k in n]


def test_the_primitive_itself() -> None:
    def raw(words):
        return jax.lax.rng_bit_generator(words, (2,))

    words = np.arange(12, dtype=np.uint32).reshape(3, 4)
    ends, bits = pcbatch.batch(raw)(words)
    for lane in range(3):
        end, want = raw(jnp.asarray(words[lane]))
        assert bool(jnp.all(bits[lane] == want)) and bool(jnp.all(ends[lane] == end))


@pytest.mark.share(2)
@IMPLS
def test_draws_have_derivatives_all_around(impl: str) -> None:
    def noisy(x, key):
        while x < 10.0:
            key, sub = jax.random.split(key)
            x = x * (2.0 + jax.random.uniform(sub))
        return x

    given, x = keys(impl, 3), jnp.array([1.0, 2.0, 5.0])
    got = jax.jvp(lambda x: pcbatch.batch(noisy)(x, given), (x,), (jnp.ones(3),))
    np.testing.assert_allclose(got[0], [noisy(v, k) for v, k in zip(x, given, strict=True)], rtol=1e-5)
    np.testing.assert_allclose(got[1], got[0] / x, rtol=1e-5)


def test_keys_of_the_default_kind_are_left_alone() -> None:
    closed: jex.ClosedJaxpr = jax.make_jaxpr(lambda key: jax.random.normal(key, (3,)))(jax.random.key(0))
    assert _Apart().inner(closed) is closed
