"""Ray marching: how far a ray goes before it meets a folded, self-similar surface.

Sphere tracing: Hart 1996, "Sphere tracing: a geometric method for the antialiased ray tracing of implicit surfaces".
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from benchmarks.queues.problem import Loop, Problem

NEAR, FAR, LIMIT, CAUTION, FOLDS = 1e-4, 20.0, 1000, 0.8, 6
EYE = np.array([0.1, 0.2, -1.0], np.float32)


def distance(p: jax.Array) -> jax.Array:
    """A bound of the distance to the surface: space is folded onto itself a few times, then met by a ball."""
    q, scale = (p + 1.0) % 2.0 - 1.0, 1.0
    for _ in range(FOLDS):
        q = jnp.clip(q, -1.0, 1.0) * 2 - q
        shrink = 1.5 / jnp.clip(jnp.dot(q, q), 0.25, 1.0)
        q, scale = q * shrink + 0.3, scale * shrink
    return (jnp.linalg.norm(q) - 1.0) / scale


def solve(direction):
    """Go as far as no surface can be, until one is near or the ray leaves the scene."""
    t, gap, steps = 0.0, 1.0, 0
    while abs(gap) > NEAR and t < FAR and steps < LIMIT:
        gap = distance(EYE + t * direction)
        t = t + CAUTION * gap
        steps += 1
    return t, steps


class State(NamedTuple):
    """The variables of `solve`."""

    t: jax.Array
    gap: jax.Array
    steps: jax.Array
    direction: jax.Array


def init(direction: jax.Array) -> State:
    """At the eye."""
    return State(jnp.float32(0), jnp.float32(1), jnp.int32(0), direction)


def step(s: State) -> State:
    """One stride."""
    gap = distance(EYE + s.t * s.direction)
    return State(s.t + CAUTION * gap, gap, s.steps + 1, s.direction)


def inputs(count: int) -> tuple[Any, ...]:
    """The first `count` rays of a square picture, row by row."""
    u = np.linspace(-1, 1, math.ceil(math.sqrt(count)))
    across, up = np.meshgrid(u, u)
    rays = np.stack([across.ravel(), up.ravel(), np.full(across.size, 1.5)], axis=1)[:count]
    return (jnp.asarray(rays / np.linalg.norm(rays, axis=1, keepdims=True), jnp.float32),)


PROBLEM = Problem(
    "march",
    "ray marching",
    solve,
    inputs,
    Loop(
        init,
        lambda s: (jnp.abs(s.gap) > NEAR) & (s.t < FAR) & (s.steps < LIMIT),
        step,
        lambda s: (s.t, s.steps),
    ),
    size=4096,
    goal=3.0,
    tolerance=1e-2,
)
