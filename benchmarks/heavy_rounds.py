"""Loops of few blocks with a long round, where vectors gain over native code from some hundred lanes on.

Random walks, Newton's method with exponentials, a map of eight numbers, gradient descent with a matrix, the
connectionist loss by two loops, and a network with an early exit.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from benchmarks.ctc import double_loop, sequences
from benchmarks.network_gradients import exit_inputs, exit_stacked


def walk(key, n):
    """The end of a walk with steps of the normal distribution."""
    x = 0.0
    for _ in range(n):
        key, now = jax.random.split(key)
        x += jax.random.normal(now)
    return x


def until_below(key, n):
    """The steps that a walk takes until it is below -5."""
    x, k = 0.0, 0
    while x > -5.0 and k < n:
        key, now = jax.random.split(key)
        x += jax.random.normal(now)
        k += 1
    return k


def hits(key, n):
    """The points of a square that are in its quarter of a circle."""
    found = 0
    for _ in range(n):
        key, now = jax.random.split(key)
        point = jax.random.uniform(now, (2,))
        if point @ point < 1:
            found += 1
    return found


def lambert(x):
    """The inverse of `y * exp(y)` by Newton's method."""
    y = x
    while jnp.abs(jnp.exp(y) * y - x) > 1e-4:
        y = y - (y * jnp.exp(y) - x) / (jnp.exp(y) * (y + 1))
    return y


def rounds_of_a_map(c):
    """The rounds until eight numbers are large."""
    z, k = jnp.zeros(8), 0
    while k < 50 and jnp.sum(z * z) < 4:
        z = jnp.sin(z * z) + c
        k += 1
    return k


def descent(x):
    """The steps of gradient descent on a quadratic function."""
    a = jnp.arange(64.0).reshape(8, 8) / 64
    gradient, k = a @ x, 0
    while jnp.sum(gradient * gradient) > 1e-3 and k < 100:
        x = x - 0.1 * gradient
        gradient = a.T @ (a @ x)
        k += 1
    return k


def programs(lanes: int) -> dict[str, tuple[Callable[..., Any], tuple[Any, ...]]]:
    """Return functions of one example with arguments for all lanes, by name."""
    rng = np.random.default_rng(0)
    keys, ns = jax.random.split(jax.random.key(0), lanes), rng.integers(1, 60, lanes).astype(np.int32)
    x, w = exit_inputs(lanes, stacked=True)
    return {
        "walk of normal steps": (walk, (keys, ns)),
        "walk until it is below": (until_below, (keys, ns)),
        "points in a circle": (hits, (keys, ns)),
        "Lambert's function": (lambert, (rng.uniform(1, 50, lanes).astype(np.float32),)),
        "rounds of a map": (rounds_of_a_map, (rng.normal(size=lanes).astype(np.float32),)),
        "gradient descent": (descent, (rng.normal(size=(lanes, 8)).astype(np.float32),)),
        "connectionist loss, two loops": (double_loop, sequences(lanes)),
        "network with an early exit": (lambda x: exit_stacked(x, w), (x,)),
    }
