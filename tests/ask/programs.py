"""Functions that tests ask, and host code that asks them."""

from __future__ import annotations

from typing import Any

import jax.numpy as jnp
import numpy as np

import pcbatch

WEIGHTS = 2 * jnp.eye(4)


@pcbatch.batch(in_axes=(None, 0))
def grown(weights: Any, x: Any) -> Any:
    """Apply weights until the sum is large: examples take different times."""
    while jnp.sum(x) < 100:
        x = weights @ x + 1
    return x, jnp.sum(x)


@pcbatch.batch
def named(n: Any, name: Any) -> Any:
    """Double a number and lengthen a text; the number 3 fails."""
    assert n != 3, f"bad {n}"
    return n * 2, name + "!"


@pcbatch.batch
def first_state(x: Any) -> Any:
    """Return a state of two arrays."""
    return {"h": x * jnp.ones(3), "n": 0}


@pcbatch.batch
def next_state(state: Any, x: Any) -> Any:
    """Advance such a state."""
    return {"h": state["h"] + x, "n": state["n"] + 1}


@pcbatch.batch(max_steps=200)
def steps(n: Any) -> Any:
    """Count Collatz steps; more than 200 visits fail."""
    count = 0
    while n != 1:
        n = n // 2 if n % 2 == 0 else 3 * n + 1
        count += 1
    return count


@pcbatch.batch
def total(xs: Any) -> Any:
    """Sum and sort a list."""
    result = 0
    for x in xs:
        result += x
    return result, sorted(xs)


def play(k: int, ask: Any = grown.ask) -> float:
    """Ask one to three times, each time with what came of the last answer."""
    x, score = np.ones(4, np.float32) * k, 0.0
    for turn in range(k % 3 + 1):
        x, s = ask(WEIGHTS, x)
        x = np.asarray(x) % 7 + turn
        score += float(s)
    return score
