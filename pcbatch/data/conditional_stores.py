"""Stores that are made under a condition, at a place that is in range whether they are made or not.

put_where(columns, (bucket, column), value, new)
    together: a scatter, with an index that is out of range where the condition does not hold
    alone:    what is there is read, and it or the value is stored, without a look at the range
"""

from __future__ import annotations

import math
from typing import Any

import jax
import jax.numpy as jnp

from pcbatch.data.by_width import by_width
from pcbatch.data.columns import put
from pcbatch.data.values import Column, Columns, Flag, Index, Value

FEW = 4  # numbers that a lane alone reads and stores again rather than not at all


def put_where(columns: Columns, place: tuple[Index, ...], values: Value, where: Flag) -> Value:
    """Return columns with the element at some indices, each in range, replaced where a condition holds, bool[]."""

    def stored(leaf: Column, value: Value) -> Value:
        few = math.prod(leaf.shape[len(place) :]) <= FEW and not jnp.issubdtype(leaf.dtype, jax.dtypes.prng_key)
        return (by_width(_together, _alone) if few and leaf.size else _together)(leaf, place, value, where)

    return jax.tree.map(stored, columns, values)


def _together(leaf: Column, place: tuple[Index, ...], value: Value, where: Flag) -> Value:
    return put(leaf, (*place[:-1], jnp.where(where, place[-1], leaf.shape[len(place) - 1])), value)


def _alone(leaf: Column, place: tuple[Index, ...], value: Value, where: Flag) -> Value:
    inner = leaf.shape[len(place) :]
    starts = [jnp.asarray(one, jnp.int32) for one in (*place, *[0] * len(inner))]
    old = jax.lax.dynamic_slice(leaf, starts, (*[1] * len(place), *inner), allow_negative_indices=False)
    barrier: Any = jax.lax.optimization_barrier  # untyped
    old = barrier(old)  # XLA may copy an array that is read and stored into by one loop
    new = jnp.where(where, jnp.broadcast_to(jnp.asarray(value, leaf.dtype), inner).reshape(old.shape), old)
    return jax.lax.dynamic_update_slice(leaf, new, starts, allow_negative_indices=False)
