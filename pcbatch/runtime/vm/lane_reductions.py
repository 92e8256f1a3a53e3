"""Reductions over the lanes, in forms that XLA on CPU compiles to one kernel.

XLA rewrites a reduction of more than 32 elements on CPU into two or three, so that floating sums are exact and fast: a
comparison, a reduction of windows of 32 and a reduction of what is left are then three kernels or more, in a trip that
asks for many of them. Reductions of several arrays at once are not rewritten, and take their operands from the
comparison in one kernel: so the lanes are reduced as `PARTS` arrays side by side (docs/users/performance.md). Integers
and truth values do not mind the order.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp

from pcbatch.lowering.typing.jax_types import is_symbolic

PARTS = 2
FEWEST = 64  # lanes: fewer are one kernel in any case


def any_lane(mask: jax.Array) -> jax.Array:
    """Return whether a mask bool[lanes] is true for any lane, bool[]."""
    return _in_parts(mask, False, jax.lax.bitwise_or) if _many(mask) else jnp.any(mask)


def count_lanes(mask: jax.Array) -> jax.Array:
    """Return the number of lanes for which a mask bool[lanes] is true, int32[]."""
    if not _many(mask):
        return jnp.sum(mask, dtype=jnp.int32)
    return _in_parts(mask.astype(jnp.int32), 0, jax.lax.add)


def least(numbers: jax.Array, bound: int) -> jax.Array:
    """Return the smallest of some integers [lanes] and `bound`, of their dtype, []."""
    return _in_parts(numbers, bound, jax.lax.min) if _many(numbers) else jnp.min(numbers, initial=bound)


def _many(values: jax.Array) -> bool:
    lanes = values.shape[0]
    return not is_symbolic(lanes) and lanes >= FEWEST and lanes % PARTS == 0


def _in_parts(values: jax.Array, start: Any, combine: Callable[[Any, Any], Any]) -> jax.Array:
    size = values.shape[0] // PARTS
    parts = tuple(values[k * size : (k + 1) * size] for k in range(PARTS))
    first = (jnp.asarray(start, values.dtype),) * PARTS
    found = jax.lax.reduce(parts, first, lambda old, new: tuple(map(combine, old, new)), (0,))
    whole: jax.Array = functools.reduce(combine, found)
    return whole
