"""Reductions of many floating numbers as loops for one lane.

before:  c:f32[100] = reduce_sum[axes=(1,)] b:f32[100,100]
after:   c:f32[100] = jit[jaxpr={ ... a loop over rows, and in it one over vectors that are added up ... }] b

XLA:CPU makes those of 4,096 numbers or more kernels of a library, which no native function holds. Rounding is that of
sums of `WIDTH` numbers side by side.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import jax
import jax.numpy as jnp

LARGE = 2048  # numbers from which on there are loops: XLA's own limit may be another one tomorrow
WIDTH = 64  # numbers that are combined side by side, in vectors of the processor

COMBINE: dict[str, tuple[Callable[[Any, Any], Any], Callable[..., Any]]] = {
    "reduce_sum": (jnp.add, jnp.sum),
    "reduce_max": (jnp.maximum, jnp.max),
    "reduce_min": (jnp.minimum, jnp.min),
}
"""What combines two arrays, and what reduces one, by the name of the primitive."""


def is_large(eqn: Any) -> bool:
    """Whether an equation reduces so many floating numbers that XLA:CPU leaves it to a library."""
    aval = eqn.invars[0].aval
    return jnp.issubdtype(aval.dtype, jnp.floating) and math.prod(aval.shape) >= LARGE


def reduced(name: str, operand: Any, *, axes: Sequence[int], **_: Any) -> jax.Array:
    """Reduce along axes, as the primitive of this name does."""
    kept = [d for d in range(operand.ndim) if d not in axes]
    shape = [operand.shape[d] for d in kept]
    count = math.prod(operand.shape[d] for d in axes)
    if operand.ndim - 1 in axes:
        rows = jnp.transpose(operand, (*kept, *axes)).reshape(-1, count)
        out = jax.lax.map(lambda row: _of_row(name, row), rows) if len(rows) > 1 else _of_row(name, rows[0])
    else:
        out = _of_rows(name, jnp.transpose(operand, (*axes, *kept)).reshape(count, -1))
    return out.reshape(shape)


def _of_row(name: str, row: Any) -> jax.Array:
    """Reduce a vector."""
    combine, reduce = COMBINE[name]
    whole = len(row) // WIDTH
    if whole < 2:
        return jnp.asarray(reduce(row))
    vectors = jnp.asarray(reduce(_of_rows(name, row[: whole * WIDTH].reshape(whole, WIDTH))))
    rest = row[whole * WIDTH :]
    return jnp.asarray(combine(vectors, reduce(rest))) if len(rest) else vectors


def _of_rows(name: str, rows: Any) -> jax.Array:
    """Combine the rows of a matrix."""
    combine, _ = COMBINE[name]
    out: jax.Array = jax.lax.fori_loop(1, len(rows), lambda k, total: combine(total, rows[k]), rows[0])
    return out
