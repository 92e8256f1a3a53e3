"""The physics under the sampler: points, one leapfrog step, energies, the turning criterion.

Everything here is straight-line code for one chain, so the compiler sees each function as a primitive.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp

# Log density and its gradient at a flat position, given the data.
LogpAndGrad = Callable[..., tuple[jax.Array, jax.Array]]


class Mass(NamedTuple):
    """A mass matrix: diagonal (arrays [n]) or dense (arrays [n, n])."""

    inverse: jax.Array  # an estimate of the covariance of the target
    root: jax.Array  # what makes momenta of standard normal numbers: root @ root.T is the mass matrix


@dataclass(frozen=True, slots=True)
class Position:
    """A position and the gradient of the log density there.

    Vectors that change together are the rows of one array: what a chain keeps or replaces is then few arrays.
    """

    rows: Any  # [..., rows, n]: position, gradient, and what a subclass adds

    @property
    def q(self) -> Any:
        """Position."""
        return self.rows[..., 0, :]

    @property
    def grad(self) -> Any:
        """Gradient of the log density there."""
        return self.rows[..., 1, :]


@jax.tree_util.register_dataclass
@dataclass(frozen=True, slots=True)
class Sample(Position):
    """A position of the chain. Its gradient travels with it, so that no draw computes one twice."""

    logp: Any


@jax.tree_util.register_dataclass
@dataclass(frozen=True, slots=True)
class Point(Position):
    """A point of phase space from which the integrator can go on: its third row is the momentum."""

    @property
    def p(self) -> Any:
        """Momentum."""
        return self.rows[..., 2, :]


def velocity(p: jax.Array, mass: Mass) -> jax.Array:
    """Velocity of momentum `p`."""
    return mass.inverse * p if mass.inverse.ndim == 1 else mass.inverse @ p


def momentum(noise: jax.Array, mass: Mass) -> jax.Array:
    """A momentum from its conditional distribution, Normal(0, mass), out of standard normal numbers."""
    return mass.root * noise if mass.root.ndim == 1 else mass.root @ noise


def kinetic(p: jax.Array, mass: Mass) -> jax.Array:
    """Kinetic energy of momentum `p`."""
    return 0.5 * jnp.dot(p, velocity(p, mass))


def leapfrog(
    logp_and_grad: LogpAndGrad, point: Point, step: jax.Array, mass: Mass, data: tuple[Any, ...]
) -> tuple[Point, jax.Array]:
    """One leapfrog step, backward in time when `step` is negative; returns the log density as well."""
    p = point.p + 0.5 * step * point.grad
    q = point.q + step * velocity(p, mass)
    logp, grad = logp_and_grad(q, *data)
    return Point(jnp.stack([q, grad, p + 0.5 * step * grad])), logp


def turning(p_first: jax.Array, p_last: jax.Array, momenta: jax.Array, mass: Mass) -> jax.Array:
    """Whether a trajectory has begun to come back (Betancourt 2017, appendix A.4.2).

    `momenta` is the sum over all its points. Each end counts half: the sum stands for an integral over time, which
    the trapezoidal rule gives, and a trajectory of two points is then judged like any other.
    """
    way = velocity(momenta - 0.5 * (p_first + p_last), mass)
    return (jnp.dot(p_first, way) <= 0) | (jnp.dot(p_last, way) <= 0)
