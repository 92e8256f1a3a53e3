"""Rules of products of matrices and vectors."""

from __future__ import annotations

from collections.abc import Sequence
from math import prod
from typing import Any

import jax.numpy as jnp
import numpy as np
from jax import Array, lax
from jax.experimental.pallas import triton as plt

from pcbatch.runtime.kernel.rules.elementwise import is_float
from pcbatch.runtime.kernel.rules.padding import masked, picked, reshaped
from pcbatch.runtime.kernel.rules.registry import Unsupported, rule

LEAST = 16  # rows, columns and summands of a product that the hardware's matrix unit takes
PIECE = 16  # summands that the matrix unit is given at a time
AT_ONCE = 1 << 13  # products before they are summed; more than these, and than the factors, are added in turn
TURNS = 1024


@rule("dot_general")
def dot(eqn: Any, x: Array, y: Array) -> Sequence[Array]:
    """Multiply and add up: by the matrix unit in full precision where sizes allow, else by products and sums."""
    (cx, cy), (bx, by) = eqn.params["dimension_numbers"]
    out = eqn.outvars[0].aval
    x = masked(x, eqn.invars[0].aval.shape, cx, 0)
    y = masked(y, eqn.invars[1].aval.shape, cy, 0)
    accumulated = jnp.dtype(jnp.float32) if is_float(out) and out.dtype.itemsize == 2 else out.dtype
    x, y = x.astype(accumulated), y.astype(accumulated)
    # One order of axes for both: what they share, what is free, what is summed.
    fx, fy = ([k for k in range(v.ndim) if k not in (*c, *b)] for v, c, b in ((x, cx, bx), (y, cy, by)))
    shared, rows, columns, depth = ([v.shape[k] for k in ks] for v, ks in ((x, bx), (x, fx), (y, fy), (x, cx)))
    lead = (prod(shared),) if shared else ()
    x = reshaped(lax.transpose(x, (*bx, *fx, *cx)), (*lead, prod(rows), prod(depth)))
    y = reshaped(lax.transpose(y, (*by, *fy, *cy)), (*lead, prod(columns), prod(depth)))
    if is_float(out) and not shared and min(prod(rows), prod(columns), prod(depth)) >= LEAST:
        found = _by_unit(x, y)
    else:
        found = _summed(x, y)
    return [reshaped(found.astype(out.dtype), (*shared, *rows, *columns))]


def _by_unit(x: Array, y: Array) -> Array:
    """Products [n, k] x [m, k] -> [n, m] by the matrix unit, `PIECE` summands at a time.

    A thread holds all summands of a row and of a column of what it multiplies, so many of them spill.
    """
    (n, k), m = x.shape, y.shape[0]
    if k <= PIECE:
        return _multiplied(x, y)
    x, y = (reshaped(v, (v.shape[0], k // PIECE, PIECE)) for v in (x, y))

    def turn(i: Array, out: Array) -> Array:
        a, b = (reshaped(picked(v, 1, i), (v.shape[0], PIECE)) for v in (x, y))
        return out + _multiplied(a, b)

    summed: Array = lax.fori_loop(0, k // PIECE, turn, jnp.zeros((n, m), x.dtype))
    return summed


def _multiplied(x: Array, y: Array) -> Array:
    # Three products of TF32, or one of it, would not give what the plain function gives.
    product: Array = plt.dot(x, lax.transpose(y, (1, 0)), precision=lax.Precision.HIGHEST)
    return product


def _summed(x: Array, y: Array) -> Array:
    """Products [..., n, k] x [..., m, k] -> [..., n, m]: at once if they are few, else one summand after the other."""
    (*lead, n, k), m, last = x.shape, y.shape[-2], x.ndim
    at_once = max(AT_ONCE, 2 * (x.size + y.size))
    x, y = jnp.expand_dims(x, -2), jnp.expand_dims(y, -3)
    if prod(lead) * n * m * k <= at_once:
        return jnp.sum(x * y, axis=-1, dtype=x.dtype)
    if k > TURNS:
        raise Unsupported(f"a product of {prod(lead)} x {n} x {m} sums of {k} terms")

    def turn(i: Array, out: Array) -> Array:
        return out + jnp.squeeze(picked(x, last, i), -1) * jnp.squeeze(picked(y, last, i), -1)

    found: Array = lax.fori_loop(np.int32(0), np.int32(k), turn, jnp.zeros((*lead, n, m), x.dtype))
    return found
