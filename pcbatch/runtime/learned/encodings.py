"""Encodings of what waits: a digit for each block, from the numbers of lanes or records that wait for it.

The encodings are those of ED-Batch (ICML 2023): "base" says which blocks something waits for, "max" also for which
block most waits, "sort" the order of the blocks by how much waits. Of equal numbers the block that comes first counts
as the larger one.
"""

from __future__ import annotations

from typing import Any

import jax.numpy as jnp
import numpy as np

ENCODINGS = ("base", "max", "sort")


def digits(encoding: str, waiting: np.ndarray) -> tuple[int, ...]:
    """Return the state on the host, for int[blocks]."""
    counts = waiting.tolist()
    if encoding == "sort":
        found = [0] * len(counts)
        order = sorted((k for k, n in enumerate(counts) if n), key=lambda k: (-counts[k], k))
        for place, k in enumerate(order):
            found[k] = place + 1
        return tuple(found)
    state = [int(n > 0) for n in counts]
    if encoding == "max" and any(state):
        state[counts.index(max(counts))] = 2
    return tuple(state)


def traced_digits(encoding: str, waiting: Any) -> Any:
    """Return the same inside a trace, int32[blocks]."""
    some = waiting > 0
    number = jnp.arange(waiting.shape[0], dtype=jnp.int32)
    if encoding == "sort":
        mine, theirs = waiting[:, None], waiting[None, :]
        before = (theirs > mine) | ((theirs == mine) & (number[None, :] < number[:, None]))
        return jnp.where(some, 1 + jnp.sum(before, axis=1, dtype=jnp.int32), 0)
    state = some.astype(jnp.int32)
    if encoding == "max":
        state = state + (some & (number == jnp.argmax(waiting))).astype(jnp.int32)
    return state
