"""The rule of draws from gamma distributions, of which JAX makes those of beta, Dirichlet, t and others."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import jax
from jax import Array, lax

from pcbatch.runtime.kernel.rules.random import drawn
from pcbatch.runtime.kernel.rules.registry import rule


@rule("random_gamma")
def gamma(eqn: Any, keys: Array, shapes: Array) -> Sequence[Array]:
    """Draw with JAX's own use of each key, so that the draws are its."""
    size, axes = eqn.invars[1].aval.shape, len(eqn.invars[0].aval.shape)
    in_logs = eqn.params["log_space"]

    def of_all(words: Array, shapes: Array) -> Array:
        keys = jax.random.wrap_key_data(words, impl="threefry2x32").reshape(-1)
        apart = shapes.reshape(keys.size, -1)
        each = jax.vmap(lambda key: jax.random.split(key, apart.shape[1]))(keys)
        found = jax.vmap(lambda key, a: one(key, a, in_logs))(each.reshape(-1), apart.reshape(-1))
        return lax.reshape(found, size)

    assert size[:axes] == eqn.invars[0].aval.shape
    return drawn(eqn, of_all, keys, shapes)


def one(key: Any, shape: Any, in_logs: bool) -> Any:
    """Draw from one distribution (Marsaglia and Tsang, "A simple method for generating gamma variables", 2000).

    A shape below 1 is raised by 1 and the draw multiplied by a power of a uniform number, or, as this may underflow,
    its logarithm added to.
    """

    def c(value: float) -> Any:
        return lax.full_like(shape, value)

    large = shape >= c(1)
    d = lax.select(large, shape, shape + c(1)) - c(1 / 3)
    scale = c(1 / 3) / lax.sqrt(d)

    def refused(state: Any) -> Any:
        _, square, cube, u = state
        slow = lax.log(u) >= square * c(0.5) + d * (c(1) - cube + lax.log(cube))
        return (u >= c(1) - c(0.0331) * square * square) & slow

    def normal(state: Any) -> Any:
        key, mine = jax.random.split(state[0])
        x = jax.random.normal(mine, (), shape.dtype)
        return key, x, c(1) + x * scale

    def attempt(state: Any) -> Any:
        key, of_normal, of_uniform = jax.random.split(state[0], 3)
        _, x, v = lax.while_loop(lambda s: s[2] <= c(0), normal, (of_normal, c(0), c(-1)))
        return key, x * x, v * v * v, jax.random.uniform(of_uniform, (), shape.dtype)

    key, last = jax.random.split(key)
    _, _, cube, _ = lax.while_loop(refused, attempt, (key, c(0), c(1), c(2)))
    if in_logs:
        log_u = -jax.random.exponential(last, (), shape.dtype)
        boost = lax.select(large | (log_u == c(0)), c(0), log_u * (c(1) / shape))
        return lax.log(d) + lax.log(cube) + boost
    u = c(1) - jax.random.uniform(last, (), shape.dtype)
    return d * cube * lax.select(large, c(1), lax.pow(u, c(1) / shape))
