"""Log densities of flat vectors, on which the sampler is tested."""

from __future__ import annotations

import jax
import jax.numpy as jnp


def logistic(q: jax.Array) -> jax.Array:
    """Independent standard logistic distributions: not normal, and with a known distribution function."""
    return -jnp.sum(q + 2 * jnp.logaddexp(0.0, -q))


def normal(q: jax.Array) -> jax.Array:
    """Independent standard normal distributions."""
    return -0.5 * jnp.sum(q**2)


def flat(q: jax.Array) -> jax.Array:
    """The same density everywhere."""
    return 0.0 * jnp.sum(q)
