"""Maximum likelihood: a mixture of two normal distributions fitted by BFGS with backtracking.

The update of the inverse Hessian and the condition of sufficient decrease: Nocedal and Wright 2006, "Numerical
Optimization", chapters 3 and 6.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from benchmarks.queues.problem import Loop, Problem

POINTS, LIMIT = 300, 1000
DECREASE, SHORTEST, CURVED = 1e-4, 1e-5, 1e-9
START = np.array([0.0, -1.0, 1.0, 0.0, 0.0], np.float32)  # log odds of the first, two means, two log deviations
IDENTITY = np.eye(5, dtype=np.float32)


def loss(p: jax.Array, x: jax.Array) -> jax.Array:
    """Mean negative log likelihood, with a little pull towards zero."""

    def component(log_odds: jax.Array, mean: jax.Array, log_sd: jax.Array) -> jax.Array:
        return jax.nn.log_sigmoid(log_odds) - log_sd - 0.5 * ((x - mean) * jnp.exp(-log_sd)) ** 2

    both = jnp.logaddexp(component(p[0], p[1], p[3]), component(-p[0], p[2], p[4]))
    return -jnp.mean(both) + 1e-3 * jnp.sum(p**2)


def update(inverse: jax.Array, s: jax.Array, y: jax.Array) -> jax.Array:
    """The inverse Hessian after a move by `s` that changed the gradient by `y`."""
    curvature = jnp.dot(s, y)
    rho = 1 / jnp.where(curvature > CURVED, curvature, 1.0)
    left = jnp.asarray(IDENTITY) - rho * jnp.outer(s, y)
    return jnp.where(curvature > CURVED, left @ inverse @ left.T + rho * jnp.outer(s, s), inverse)


def enough(f: jax.Array, f_new: jax.Array, slope: jax.Array, length: jax.Array) -> jax.Array:
    """Did this step decrease the loss as much as it should?"""
    return f_new <= f + DECREASE * length * slope


def settled(f: jax.Array, f_new: jax.Array, s: jax.Array) -> jax.Array:
    """Has the search come to rest?"""
    return (jnp.abs(f_new - f) <= 1e-6 + 1e-5 * jnp.abs(f)) & (jnp.max(jnp.abs(s)) <= 1e-3)


def solve(x):
    """Follow quasi-Newton directions downhill; a step that does not decrease the loss is halved."""
    p, inverse = START, IDENTITY
    f, g = jax.value_and_grad(loss)(p, x)
    direction, length, evaluations = -g, 1.0, 0
    while evaluations < LIMIT:
        q = p + length * direction
        f_new, g_new = jax.value_and_grad(loss)(q, x)
        evaluations += 1
        if enough(f, f_new, jnp.dot(g, direction), length):
            done = settled(f, f_new, q - p)
            inverse = update(inverse, q - p, g_new - g)
            p, f, g = q, f_new, g_new
            direction, length = -inverse @ g, 1.0
            if done:
                break
        else:
            length = length / 2
            if length < SHORTEST:
                break
    return p, evaluations


class State(NamedTuple):
    """The variables of `solve`."""

    p: jax.Array
    f: jax.Array
    g: jax.Array
    inverse: jax.Array
    direction: jax.Array
    length: jax.Array
    evaluations: jax.Array
    done: jax.Array
    x: jax.Array


def init(x: jax.Array) -> State:
    """At the common start."""
    p = jnp.asarray(START)
    f, g = jax.value_and_grad(loss)(p, x)
    return State(p, f, g, jnp.asarray(IDENTITY), -g, jnp.float32(1), jnp.int32(0), jnp.array(False), x)


def step(s: State) -> State:
    """One evaluation of the loss."""
    q = s.p + s.length * s.direction
    f, g = jax.value_and_grad(loss)(q, s.x)
    ok = enough(s.f, f, jnp.dot(s.g, s.direction), s.length)
    inverse = update(s.inverse, q - s.p, g - s.g)
    moved = (q, f, g, inverse, -inverse @ g, jnp.ones_like(s.length))
    stayed = (s.p, s.f, s.g, s.inverse, s.direction, s.length / 2)
    new = jax.tree.map(lambda a, b: jnp.where(ok, a, b), moved, stayed)
    done = jnp.where(ok, settled(s.f, f, q - s.p), s.length / 2 < SHORTEST)
    return State(*new, s.evaluations + 1, done, s.x)


def inputs(count: int) -> tuple[Any, ...]:
    """Data sets whose two components lie close together or far apart."""
    rng = np.random.default_rng(0)
    apart, share = rng.uniform(0.5, 4.0, count), rng.uniform(0.2, 0.8, count)
    deviation = np.exp(rng.normal(0, 0.3, (count, 2)))
    first = rng.random((count, POINTS)) < share[:, None]
    low = rng.normal(size=(count, POINTS)) * deviation[:, :1] - apart[:, None] / 2
    high = rng.normal(size=(count, POINTS)) * deviation[:, 1:] + apart[:, None] / 2
    return (jnp.asarray(np.where(first, low, high), jnp.float32),)


def optimistix_solver() -> Callable[..., Any]:
    """The same loss by Optimistix's BFGS, for one example. Its line search and its end are its own."""
    import optimistix

    solver = optimistix.BFGS(rtol=1e-5, atol=1e-6)

    def one(x: jax.Array) -> Any:
        found = optimistix.minimise(loss, solver, jnp.asarray(START), args=x, max_steps=LIMIT, throw=False)
        return found.value, found.stats["num_steps"]

    return one


PROBLEM = Problem(
    "fit",
    "BFGS fit",
    solve,
    inputs,
    Loop(init, lambda s: ~s.done & (s.evaluations < LIMIT), step, lambda s: (s.p, s.evaluations)),
    size=1024,
    goal=1.4,
    tolerance=5e-2,
    library=("optimistix", optimistix_solver),
)
