"""Elements taken along an axis, without memory: each result adds up the bits of the one element that is meant.

Such a one-hot selection has (length of the source) x (size of the result) elements. Up to ONE_HOT it is made at once;
beyond, the elements of the source are picked in turn, which holds no array larger than source and result but takes as
many turns as the source is long, so sources beyond TURNS are refused. Machine code for sm_90a of `x[:, 1:]`, 32 lanes
and 4 warps: of 20 numbers 111 registers at once and 32 in turn, of 40 numbers 255 (and 676 bytes spilt) and 40, of 100
numbers 39 kB spilt and 72. (Where rows stand in memory, a load at an index replaces both: a caller that has them may do
so in place of `taken`.)
"""

from __future__ import annotations

from collections.abc import Callable

import jax.numpy as jnp
import numpy as np
from jax import Array, lax

from pcbatch.runtime.kernel.rules.padding import along, from_words, padded_size, picked, reshaped, to_words, where
from pcbatch.runtime.kernel.rules.registry import Unsupported

ONE_HOT = 1 << 13  # elements of the selection, all lanes of a tile together
TURNS = 1024


def taken(x: Array, axis: int, index: Array, span: range | None = None) -> Array:
    """Take the elements at `index` along an axis, zeros (all bits) where there is none.

    Args:
        x: any array.
        axis: where to take.
        index: int32 of as many axes as `x`; the result is as long along `axis` as it is, elsewhere both broadcast.
        span: positions that an index may have, all others are junk; the whole axis by default.

    Raises:
        Unsupported: the source is longer than TURNS and the selection larger than ONE_HOT.
    """
    length = x.shape[axis]
    source = x.shape[:axis] + (1,) + x.shape[axis + 1 :]
    result = jnp.broadcast_shapes(source, index.shape)
    size = length * int(np.prod(result, dtype=np.int64))
    if index.shape[axis] == 1:
        return picked(_spread(x, index.shape, axis), axis, index)
    span = range(length) if span is None else span
    if not span:
        return jnp.zeros(result, x.dtype)
    if size <= max(ONE_HOT, 2 * x.size):
        wide = jnp.expand_dims(to_words(x), axis + 1)
        at = jnp.expand_dims(index, axis)
        hit = along(length, axis, wide.ndim) == at
        words = jnp.sum(where(hit, wide, jnp.zeros((), wide.dtype)), axis=axis, dtype=wide.dtype)
        return from_words(words, x.dtype)
    if len(span) > TURNS:
        raise Unsupported(f"a selection of {size} elements, from an axis of {length}")

    def turn(k: Array, out: Array) -> Array:
        return where(index == k, picked(x, axis, k), out)

    found: Array = lax.fori_loop(np.int32(span.start), np.int32(span.stop), turn, jnp.zeros(result, x.dtype))
    return found


def _spread(x: Array, shape: tuple[int, ...], axis: int) -> Array:
    """`x` of the shape of an index, but its own along the axis."""
    full = jnp.broadcast_shapes(x.shape[:axis] + (1,) + x.shape[axis + 1 :], shape)
    return jnp.broadcast_to(x, full[:axis] + (x.shape[axis],) + full[axis + 1 :])


def moved(x: Array, axis: int, size: int, source: Callable[[Array], Array], span: range | None = None) -> Array:
    """Take elements along an axis, result position -> source position (int32), for a padded result of `size`."""
    return taken(x, axis, source(along(size, axis, x.ndim)), span)


def window(x: Array, axis: int, start: int, size: int, stride: int = 1) -> Array:
    """Take `size` elements from `start` on, padded; those beyond the end or before the beginning are zeros or junk."""
    length, room = x.shape[axis], padded_size(size)
    if size == 1 and length > 1:
        return picked(x, axis, start)
    if start == 0 and stride == 1 and room == length:
        return x
    if stride == 1 and room <= length and start % room == 0 and 0 <= start < length:  # one of equal parts
        parts = reshaped(x, x.shape[:axis] + (length // room, room) + x.shape[axis + 1 :])
        return reshaped(picked(parts, axis, start // room), x.shape[:axis] + (room,) + x.shape[axis + 1 :])
    span = range(max(start, 0), min(start + (size - 1) * stride + 1, length))
    return moved(x, axis, room, lambda k: k * stride + start, span)
