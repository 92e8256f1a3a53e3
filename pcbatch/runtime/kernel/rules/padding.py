"""Arrays whose axes are rounded up to powers of two, and bits that move without being touched.

Triton wants every array to have a power of two elements. So each axis is rounded up; what lies beyond the true length
is junk, of any value, that no reduction and no product may see.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array, lax

from pcbatch.lowering.typing.jax_types import array_struct
from pcbatch.runtime.kernel.rules.registry import is_key


def padded_size(n: int) -> int:
    """Round the length of an axis up to a power of two; 1 for an empty axis.

    Example:
        >>> [padded_size(n) for n in (0, 1, 2, 3, 20)]
        [1, 1, 2, 4, 32]
    """
    return 1 << max(int(n) - 1, 0).bit_length()


def padded_shape(shape: Sequence[int]) -> tuple[int, ...]:
    """Round each axis of a shape up to a power of two.

    Example:
        >>> padded_shape((5, 1, 0))
        (8, 1, 1)
    """
    return tuple(padded_size(n) for n in shape)


def logical_shape(aval: Any) -> tuple[int, ...]:
    """Return the true shape of a value, for random keys that of their words, [..., 2] uint32."""
    return tuple(aval.shape) + ((2,) if is_key(aval) else ())


def iota(shape: Sequence[int], axis: int) -> Array:
    """Return positions along an axis, int32."""
    return lax.broadcasted_iota(jnp.int32, tuple(shape), axis)


def along(size: int, axis: int, ndim: int) -> Array:
    """Return positions along one axis, int32, of length 1 along all others."""
    return iota(tuple(size if k == axis else 1 for k in range(ndim)), axis)


def masked(x: Array, shape: Sequence[int], axes: Iterable[int], fill: Any) -> Array:
    """Fill what lies beyond the true lengths of some axes."""
    for axis in axes:
        if x.shape[axis] != shape[axis]:
            x = where(iota(x.shape, axis) < shape[axis], x, filled((), fill, x.dtype))
    return x


def traced(x: Any) -> Any:
    """Return a number as a value of the kernel: most lowerings to Triton take no other. A selection keeps its bits."""
    if isinstance(x, jax.core.Tracer):
        return x
    return x if np.ndim(x) else _selected(jnp.asarray(x))


def _selected(x: Array) -> Array:
    """A number as the result of an operation that JAX does not fold."""
    return lax.select(jnp.ones((), jnp.bool_), x, x)


def filled(shape: Sequence[int], value: Any, dtype: Any) -> Array:
    """Return an array of one number; Triton takes none of 64 bits that is beyond the signed ones."""
    if jnp.dtype(dtype) == jnp.uint64 and int(value) > int(int_info(jnp.int64).max):
        signed = _selected(jnp.full((), int(value) - (1 << 64), jnp.int64))
        return jnp.broadcast_to(signed, tuple(shape)).astype(jnp.uint64)
    return jnp.full(tuple(shape), value, dtype)


def where(condition: Array, x: Array, y: Array) -> Array:
    """Select, after broadcasting all three; no element is computed with, so NaN and the sign of zero stay."""
    shape = jnp.broadcast_shapes(condition.shape, x.shape, y.shape)
    return lax.select(*(jnp.broadcast_to(v, shape) for v in (condition, x, y)))


def any_(x: Array) -> Array:
    """Return whether any element is true; Triton has no reduction by `or`."""
    ones = x.astype(jnp.int32)
    for _ in range(x.ndim):
        ones = jnp.max(ones, axis=-1)
    return ones > 0


# Bits. A sum that picks one element of many is a sum of integers: one of floats would lose the sign of zero, and NaN or
# infinity times zero is NaN.


def word_type(dtype: Any) -> Any:
    """Return the integers that carry the bits of a type: int32 or int64."""
    return jnp.int64 if jnp.dtype(dtype).itemsize == 8 else jnp.int32


def to_words(x: Array) -> Array:
    """Return the bits of an array as int32 or int64."""
    if jnp.issubdtype(x.dtype, jnp.floating):
        x = lax.bitcast_convert_type(x, {2: jnp.int16, 4: jnp.int32, 8: jnp.int64}[x.dtype.itemsize])
    return x.astype(word_type(x.dtype))


def from_words(words: Array, dtype: Any) -> Array:
    """Return the array of which these are the bits."""
    if not jnp.issubdtype(dtype, jnp.floating):
        return words.astype(dtype)
    small = {2: jnp.int16, 4: jnp.int32, 8: jnp.int64}[jnp.dtype(dtype).itemsize]
    return lax.bitcast_convert_type(words.astype(small), dtype)


def picked(x: Array, axis: int, index: Array | int) -> Array:
    """Pick one element along an axis, which stays with length 1; zero where there is none at `index`.

    `index` is a number, or int32 of length 1 along the axis that broadcasts against `x` elsewhere.
    """
    hit = along(x.shape[axis], axis, x.ndim) == index
    words = to_words(x)
    found = jnp.sum(where(hit, words, jnp.zeros((), words.dtype)), axis=axis, keepdims=True, dtype=words.dtype)
    return from_words(found, x.dtype)


def reshaped(x: Array, shape: Sequence[int]) -> Array:
    """Reshape, also to a scalar: Triton makes of more than one axis there a sum that loses the sign of zero."""
    if x.shape == tuple(shape):
        return x
    if not shape and x.ndim > 1:
        x = lax.reshape(x, (1,))
    return lax.reshape(x, tuple(shape))


def struct(aval: Any) -> jax.ShapeDtypeStruct:
    """Return the padded type of a value."""
    dtype = jnp.dtype(jnp.uint32) if is_key(aval) else aval.dtype
    padded: jax.ShapeDtypeStruct = array_struct(padded_shape(logical_shape(aval)), dtype)
    return padded


def int_info(dtype: Any) -> Any:
    """Return the limits of a type of integers."""
    return np.iinfo(np.dtype(dtype))
