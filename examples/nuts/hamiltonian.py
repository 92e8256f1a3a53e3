"""The physics under the sampler: points, one leapfrog step, energies, the turning criterion.

Everything here is straight-line code for one chain, so the compiler sees each function as a primitive.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import jax
import jax.numpy as jnp

LogpAndGrad = Callable[[jax.Array], tuple[jax.Array, jax.Array]]


class Sample(NamedTuple):
    """A position of the chain. Its gradient travels with it, so that no draw computes one twice."""

    q: jax.Array
    logp: jax.Array
    grad: jax.Array


class Point(NamedTuple):
    """A point of phase space from which the integrator can go on."""

    q: jax.Array
    p: jax.Array
    grad: jax.Array


def kinetic(p: jax.Array, inv_mass: jax.Array) -> jax.Array:
    """Kinetic energy of momentum `p` under a diagonal mass matrix."""
    return 0.5 * jnp.sum(p * p * inv_mass)


def draw_momentum(key: jax.Array, inv_mass: jax.Array) -> jax.Array:
    """A momentum from its conditional distribution, Normal(0, mass)."""
    return jax.random.normal(key, inv_mass.shape, inv_mass.dtype) / jnp.sqrt(inv_mass)


def leapfrog(logp_and_grad: LogpAndGrad, point: Point, step: jax.Array, inv_mass: jax.Array) -> tuple[Point, jax.Array]:
    """One leapfrog step, backward in time when `step` is negative; returns the log density as well."""
    p = point.p + 0.5 * step * point.grad
    q = point.q + step * inv_mass * p
    logp, grad = logp_and_grad(q)
    return Point(q, p + 0.5 * step * grad, grad), logp


def turning(p_first: jax.Array, p_last: jax.Array, momenta: jax.Array, inv_mass: jax.Array) -> jax.Array:
    """Whether a trajectory has begun to come back (Betancourt 2017, appendix A.4.2).

    `momenta` is the sum over all its points. Each end counts half: the sum stands for an integral over time, which
    the trapezoidal rule gives, and a trajectory of two points is then judged like any other.
    """
    velocity = inv_mass * (momenta - 0.5 * (p_first + p_last))
    return (jnp.dot(p_first, velocity) <= 0) | (jnp.dot(p_last, velocity) <= 0)
