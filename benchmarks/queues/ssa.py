"""Stochastic simulation: birth, death and dimerisation of molecules, event by event.

The direct method: Gillespie 1977, "Exact stochastic simulation of coupled chemical reactions".
"""

from __future__ import annotations

from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from benchmarks.queues.problem import Loop, Problem

END = 2.0
CHANGE = np.array([[1, 0], [-1, 0], [-2, 1], [2, -1]], np.float32)  # birth, death, two join, a pair splits
TYPICAL = np.array([20.0, 1.0, 0.02, 1.0])
EMPTY = np.zeros(2, np.float32)


def propensities(rates: jax.Array, x: jax.Array) -> jax.Array:
    """How often each reaction happens among `x[0]` single molecules and `x[1]` pairs."""
    return rates * jnp.stack([jnp.float32(1.0), x[0], x[0] * (x[0] - 1), x[1]])


def next_event(
    key_time: jax.Array, key_which: jax.Array, rates: jax.Array, x: jax.Array
) -> tuple[jax.Array, jax.Array]:
    """How long until the next reaction, and how it changes the molecules."""
    often = propensities(rates, x)
    total = jnp.sum(often)
    which = jnp.argmax(jnp.cumsum(often) > jax.random.uniform(key_which) * total)
    return jax.random.exponential(key_time) / total, jnp.asarray(CHANGE)[which]


def solve(rates, key):
    """Molecules at time END."""
    t, x, events = 0.0, EMPTY, 0
    while t < END:
        key, key_time, key_which = jax.random.split(key, 3)
        wait, change = next_event(key_time, key_which, rates, x)
        t = t + wait
        if t < END:
            x = x + change
        events += 1
    return x, events


class State(NamedTuple):
    """The variables of `solve`."""

    t: jax.Array
    x: jax.Array
    key: jax.Array
    events: jax.Array
    rates: jax.Array


def init(rates: jax.Array, key: jax.Array) -> State:
    """An empty vessel."""
    return State(jnp.float32(0), jnp.asarray(EMPTY), key, jnp.int32(0), rates)


def step(s: State) -> State:
    """One event."""
    key, key_time, key_which = jax.random.split(s.key, 3)
    wait, change = next_event(key_time, key_which, s.rates, s.x)
    t = s.t + wait
    return State(t, jnp.where(t < END, s.x + change, s.x), key, s.events + 1, s.rates)


def inputs(count: int) -> tuple[Any, ...]:
    """Rates over two decades."""
    rates = 10 ** np.random.default_rng(0).uniform(-1, 1, (count, 4)) * TYPICAL
    return jnp.asarray(rates, jnp.float32), jax.random.split(jax.random.key(0), count)


PROBLEM = Problem(
    "ssa",
    "Gillespie simulation",
    solve,
    inputs,
    Loop(init, lambda s: s.t < END, step, lambda s: (s.x, s.events)),
    size=4096,
    goal=4.0,
    tolerance=0.5,  # counts
)
