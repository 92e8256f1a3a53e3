"""Rules of reductions, cumulative operations and products; what lies beyond an axis changes no result."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from math import prod
from typing import Any

import jax.numpy as jnp
import numpy as np
from jax import Array, lax
from jax.experimental.pallas import triton as plt

from pcbatch.runtime.kernel.rules.elementwise import greater, in_float32, is_float, less
from pcbatch.runtime.kernel.rules.padding import along, int_info, masked, picked, reshaped, where
from pcbatch.runtime.kernel.rules.registry import Unsupported, rule


def lowest(dtype: Any) -> Any:
    """Return the least value of a type."""
    if dtype == jnp.bool_:
        return False
    return -np.inf if jnp.issubdtype(dtype, jnp.floating) else int_info(dtype).min


def highest(dtype: Any) -> Any:
    """Return the greatest value of a type."""
    if dtype == jnp.bool_:
        return True
    return np.inf if jnp.issubdtype(dtype, jnp.floating) else int_info(dtype).max


def ranks(x: Array, nan: int, one_zero: bool = True) -> Array:
    """Return integers in the order of floats, where all NaN are one, the greatest (1) or the least (-1).

    The bits of a float, read as an integer, are in order but for negative ones, whose order is turned round. Zeros are
    `one_zero`, or -0.0 is the lesser of two.
    """
    if x.dtype == jnp.bool_:
        return x.astype(jnp.int32)
    if not is_float(x):
        return x
    word = {4: jnp.int32, 8: jnp.int64}[x.dtype.itemsize]
    info = int_info(word)
    bits = lax.bitcast_convert_type(where(x == 0, jnp.zeros_like(x), x) if one_zero else x, word)
    bits = where(bits < 0, bits ^ jnp.full_like(bits, info.max), bits)
    return where(x != x, jnp.full_like(bits, info.max if nan > 0 else info.min), bits)


def unranked(bits: Array, dtype: Any) -> Array:
    """Return the floats of these ranks; both ranks of NaN are NaN."""
    if not jnp.issubdtype(dtype, jnp.floating):
        return bits.astype(dtype)
    bits = where(bits < 0, bits ^ jnp.full_like(bits, int_info(bits.dtype).max), bits)
    return lax.bitcast_convert_type(bits, dtype)


def _each_axis(eqn: Any, x: Array, fill: Any, reduce: Callable[[Array, int], Array]) -> Array:
    """Mask and reduce one axis after the other, the last first: Triton adds a negation of its own between two."""
    axes = sorted(eqn.params["axes"], reverse=True)
    x = masked(x, eqn.invars[0].aval.shape, axes, fill)
    for axis in axes:
        x = reduce(x, axis)
    return x


@rule("reduce_sum")
@in_float32
def add_up(eqn: Any, x: Array) -> Sequence[Array]:
    """Add up."""
    return [_each_axis(eqn, x, 0, lambda x, axis: jnp.sum(x, axis=axis, dtype=x.dtype))]


@rule("reduce_max", "reduce_min")
@in_float32
def extreme(eqn: Any, x: Array) -> Sequence[Array]:
    """Find the greatest or least by the integers of floats: Triton's own reduction drops NaN."""
    most = eqn.primitive.name == "reduce_max"
    whole = ranks(x, 1 if most else -1, one_zero=False)
    fill = (lowest if most else highest)(whole.dtype)
    found = _each_axis(eqn, whole, fill, lambda x, axis: (jnp.max if most else jnp.min)(x, axis=axis))
    return [unranked(found, x.dtype)]


@rule("argmax", "argmin")
@in_float32
def place_of_extreme(eqn: Any, x: Array) -> Sequence[Array]:
    """Find the place of the first greatest or least; the first NaN if there is one."""
    most = eqn.primitive.name == "argmax"
    whole = ranks(x, 1 if most else -1)
    fill = (lowest if most else highest)(whole.dtype)
    find = lax.argmax if most else lax.argmin
    found = _each_axis(eqn, whole, fill, lambda x, axis: find(x, axis, jnp.int32))
    return [found.astype(eqn.params["index_dtype"])]


@rule("reduce_or", "reduce_and", "reduce_xor", "reduce_prod")
@in_float32
def combine(eqn: Any, x: Array) -> Sequence[Array]:
    """Combine all elements: truth values by a maximum, others by halves, as Triton has no such reduction."""
    name = eqn.primitive.name
    if x.dtype == jnp.bool_ and name != "reduce_xor":
        either = name == "reduce_or"
        fold = jnp.max if either else jnp.min
        found = _each_axis(eqn, x.astype(jnp.int32), int(not either), lambda x, axis: fold(x, axis=axis))
        return [found.astype(jnp.bool_)]
    fills: dict[str, Any] = {"reduce_or": 0, "reduce_xor": 0, "reduce_prod": 1}
    op = {"reduce_or": lax.bitwise_or, "reduce_and": lax.bitwise_and, "reduce_xor": lax.bitwise_xor}.get(name, lax.mul)
    fill = fills.get(name, 0 if jnp.issubdtype(x.dtype, jnp.unsignedinteger) else -1)
    if name == "reduce_and" and jnp.issubdtype(x.dtype, jnp.unsignedinteger):
        fill = int_info(x.dtype).max
    return [_each_axis(eqn, x, fill, lambda x, axis: by_halves(op, x, axis))]


def by_halves(op: Callable[[Array, Array], Array], x: Array, axis: int) -> Array:
    """Reduce an axis by any associative operation: its first half with its second, and so on."""
    while (n := x.shape[axis]) > 1:
        halves = reshaped(x, x.shape[:axis] + (2, n // 2) + x.shape[axis + 1 :])
        first, second = (jnp.squeeze(picked(halves, axis, k), axis) for k in (0, 1))
        x = op(first, second)
    return reshaped(x, x.shape[:axis] + x.shape[axis + 1 :])


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


# Rules of products of matrices and vectors.

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
