"""Rules of reductions and cumulative operations; what lies beyond an axis is masked by what changes no result."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import jax.numpy as jnp
import numpy as np
from jax import Array, lax

from pcbatch.runtime.kernel.rules.elementwise import greater, in_float32, is_float, less
from pcbatch.runtime.kernel.rules.padding import along, int_info, masked, picked, reshaped, where
from pcbatch.runtime.kernel.rules.registry import rule


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
