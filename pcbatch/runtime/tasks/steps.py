"""The steps of examples, for the option `max_steps`: each visit adds those of its records, and the sum has a limit.

The option counts the blocks that a lane runs, and tasks have others. So what a visit adds is the most that a lane runs
for the same (`TaskBlock.steps`), whatever order tasks run in. An example within the limit is within it in lanes, too;
one beyond it counts as failed, and lanes run it again, and decide. One without end gets there, as no loop and no
recursion is without steps.
"""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp

STEPS = "steps"  # state key: uint32[examples]
MOST = 2**30  # steps that are counted: as many again, of one trip, have room besides


def empty(lanes: int, xp: Any = jnp) -> Any:
    """Return the counters of so many examples before a run, uint32[lanes], of JAX or of NumPy (`xp`)."""
    return xp.zeros(lanes, xp.uint32)


def added(steps: jax.Array, each: int, root: jax.Array | None, k: jax.Array, ok: jax.Array) -> jax.Array:
    """Return the counters after a visit.

    Args:
        steps: The counters, uint32[examples].
        each: The steps of each record.
        root: int32[width]: the example of each record; None: there is one example.
        k: int32[]: how many records there are.
        ok: bool[width]: the same as a mask.
    """
    if root is None:
        one: jax.Array = steps + jnp.uint32(each) * k.astype(jnp.uint32)
        return one
    at = jnp.where(ok, root, steps.shape[0])
    new: jax.Array = steps.at[at].add(jnp.uint32(each), mode="drop")
    return new


def limited(steps: jax.Array, failed: jax.Array, most: int) -> tuple[jax.Array, jax.Array]:
    """Return the counters without what exceeds the limit by more than one, and bool[examples]: which have failed.

    Args:
        steps: The counters.
        failed: bool[examples]: which have failed before.
        most: The limit.
    """
    beyond = jnp.uint32(min(most, MOST) + 1)
    return jnp.minimum(steps, beyond), failed | (steps >= beyond)
