"""Draws in a kernel: the bits of JAX."""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from pcbatch.runtime.kernel.rules import check
from tests.runtime.kernel.arrays import ints
from tests.runtime.kernel.kernels import same

pytestmark = pytest.mark.share(16)

DRAWS = {
    "bits": lambda k: (jax.random.bits(k), jax.random.bits(k, (3,)), jax.random.bits(k, (2, 3), "uint8")),
    "split": lambda k: (jax.random.split(k), jax.random.split(k, 3), jax.random.split(k, (2, 3))),
    "fold_in": lambda k: (jax.random.fold_in(k, 7), jax.random.fold_in(k, jax.random.bits(k))),
    "uniform": lambda k: (jax.random.uniform(k), jax.random.uniform(k, (5,), minval=-1.0, maxval=2.0)),
    "randint": lambda k: (jax.random.randint(k, (5,), 0, 9), jax.random.randint(k, (), -3, 3)),
    "permutation": lambda k: (jax.random.permutation(k, 5), jax.random.choice(k, 7, (3,), replace=False)),
    "bernoulli": lambda k: jax.random.bernoulli(k, 0.3, (5,)),
    "keys": lambda k: (jax.random.key_data(k), jax.random.wrap_key_data(jax.random.key_data(k)), jax.random.clone(k)),
    "chosen": lambda k: jax.lax.select(jax.random.bits(k) % 2 == 0, k, jax.random.split(k)[1]),
    "seed": lambda k: jax.random.key(jax.random.randint(k, (), 0, 99)),
}
CLOSE = {
    "normal": lambda k: (jax.random.normal(k), jax.random.normal(k, (3, 2))),
    "exponential": lambda k: (jax.random.exponential(k, (3,)), jax.random.gumbel(k, (3,)), jax.random.laplace(k)),
    "categorical": lambda k: jax.random.categorical(k, jnp.arange(5.0)),
    "multivariate": lambda k: jax.random.truncated_normal(k, -1.0, 1.0, (3,)),
    "gamma": lambda k: (jax.random.gamma(k, 2.5), jax.random.gamma(k, jnp.float32([0.3, 1.0, 7.0]))),
    "loggamma": lambda k: (jax.random.loggamma(k, 0.2, (3,)), jax.random.beta(k, 2.0, 0.5), jax.random.t(k, 3.0)),
    "dirichlet": lambda k: jax.random.dirichlet(k, jnp.float32([0.5, 1.0, 2.0])),
    "poisson": lambda k: jax.random.poisson(k, 3.0),
}


def keys(*shape: int) -> Any:
    return jax.random.split(jax.random.key(5), shape)


@pytest.mark.parametrize("name", DRAWS)
def test_draws(name: str) -> None:
    same(jax.vmap(DRAWS[name]), keys(4))
    same(DRAWS[name], keys(1)[0])


@pytest.mark.parametrize("name", CLOSE)
def test_draws_of_floats(name: str) -> None:
    same(jax.vmap(CLOSE[name]), keys(4), tolerance=1e-5)


@pytest.mark.parametrize("partitionable", [False, True])
def test_both_settings(partitionable: bool) -> None:
    with jax.threefry_partitionable(partitionable):
        for name in ("bits", "split", "fold_in"):
            same(jax.vmap(DRAWS[name]), keys(4))


def test_arrays_of_keys() -> None:
    def fn(k: Any, i: Any) -> Any:
        return (
            k[i],
            k.at[i].set(k[0]),
            k[::-1],
            k[1:],
            jnp.stack([k[0], k[2]]),
            k[:, None],
            jnp.where(i > 0, k[0], k[1]),
        )

    same(jax.vmap(fn), keys(4, 3), ints(4, low=-4, high=4))


def test_loops_that_carry_keys() -> None:
    def fn(k: Any, n: Any) -> Any:
        def turn(c: Any) -> Any:
            k, i = c
            return jax.random.split(k)[0], i + 1

        return jax.lax.while_loop(lambda c: c[1] < n, turn, (k, 0))

    same(jax.vmap(fn), keys(4), np.int32([0, 2, 1, 3]))
    same(jax.vmap(lambda k: jax.lax.scan(lambda k, _: tuple(jax.random.split(k)), k, length=3)), keys(4))


def test_bits_of_64() -> None:
    with jax.enable_x64(True):
        same(jax.vmap(lambda k: (jax.random.bits(k, (3,), "uint64"), jax.random.uniform(k, (3,)))), keys(4))


def test_other_generators_are_refused() -> None:
    key = jax.random.key(0, impl="rbg")
    refused = check(jax.make_jaxpr(lambda k: jax.random.uniform(k))(key).jaxpr)
    assert refused[0].reason == "keys of 4 words; keys of threefry2x32 have two"
