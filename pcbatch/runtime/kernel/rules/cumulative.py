"""Rules of cumulative operations along an axis, from the beginning or the end."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import jax.numpy as jnp
import numpy as np
from jax import Array, lax

from pcbatch.runtime.kernel.rules.elementwise import greater, in_float32, less
from pcbatch.runtime.kernel.rules.padding import along, masked, picked, reshaped, where
from pcbatch.runtime.kernel.rules.reductions import highest, lowest
from pcbatch.runtime.kernel.rules.registry import rule


def log_add(x: Array, y: Array) -> Array:
    """Add exponents without overflow."""
    most = greater(x, y)
    gap = x - y
    wide = (gap != gap) | (most != most)  # equal infinities, or NaN
    return where(wide, where(most != most, most, x), most + lax.log1p(lax.exp(jnp.zeros_like(gap) - abs(gap))))


@rule("cumsum", "cumprod", "cummax", "cummin", "cumlogsumexp")
@in_float32
def cumulative(eqn: Any, x: Array) -> Sequence[Array]:
    """Combine each element with all before it, or with all after it."""
    axis, reverse, name = eqn.params["axis"], eqn.params["reverse"], eqn.primitive.name
    if name == "cumsum" and not reverse:
        return [lax.cumsum(x, axis)]
    op, fill = {
        "cumsum": (lax.add, 0),
        "cumprod": (lax.mul, 1),
        "cummax": (greater, lowest(x.dtype)),
        "cummin": (less, highest(x.dtype)),
        "cumlogsumexp": (log_add, -np.inf),
    }[name]
    return [scanned(op, masked(x, eqn.invars[0].aval.shape, [axis], fill), axis, reverse)]


def scanned(op: Callable[[Array, Array], Array], x: Array, axis: int, reverse: bool = False) -> Array:
    """Scan by blocks of twice the size each time: the total of one half joins all elements of the other.

    This is the network of J. Sklansky ("Conditional-sum addition logic", 1960): n log n operations, whose operands are
    in order, and no element moves.
    """
    n, half = x.shape[axis], 1
    while half < n:
        shape = x.shape[:axis] + (n // (2 * half), 2, half) + x.shape[axis + 1 :]
        blocks = reshaped(x, shape)
        giver = picked(blocks, axis + 1, 1 if reverse else 0)
        total = picked(giver, axis + 2, 0 if reverse else half - 1)
        takes = along(2, axis + 1, len(shape)) == (0 if reverse else 1)
        total = jnp.broadcast_to(total, shape)
        blocks = where(takes, op(blocks, total) if reverse else op(total, blocks), blocks)
        x, half = reshaped(blocks, x.shape), 2 * half
    return x
