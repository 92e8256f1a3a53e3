"""Values packed as machine words, so that values that are saved together are one row: one scatter, one gather.

Elements of up to four bytes become uint32 words, of eight bytes uint64 words (only with 64-bit types switched on). The
bits are kept, so NaNs and negative zeros come back as they were.
"""

from __future__ import annotations

import math
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from pcbatch.ir.types import ArrayType

Dtype = np.dtype[Any]
SMALL: Dtype = np.dtype(np.uint32)
LARGE: Dtype = np.dtype(np.uint64)
UNSIGNED: dict[int, Dtype] = {1: np.dtype(np.uint8), 2: np.dtype(np.uint16), 4: SMALL, 8: LARGE}


def word(type_: ArrayType, floats_apart: bool = False) -> Dtype:
    """Return the dtype of the words that values of a storage type are packed into.

    `floats_apart`: floating numbers are their own words, because bits have no tangents.
    """
    if floats_apart and is_float(type_):
        return jnp.dtype(type_.dtype)
    return LARGE if _bits(jnp.dtype(type_.dtype)).itemsize == 8 else SMALL


def is_float(type_: ArrayType) -> bool:
    """Whether values of a type have tangents: floating and complex numbers."""
    return not type_.dtype.startswith("key<") and bool(jnp.issubdtype(jnp.dtype(type_.dtype), jnp.inexact))


def width(type_: ArrayType, word: Dtype) -> int:
    """Return the number of words per lane of a storage type."""
    if word not in (SMALL, LARGE):
        return type_.size
    return type_.size * _per_element(jnp.dtype(type_.dtype))


def pack(value: Any, lanes: int, word: Dtype) -> jax.Array:
    """Return values [lanes, ...] as words, [lanes, width]."""
    if word not in (SMALL, LARGE):
        return value.reshape(lanes, math.prod(value.shape[1:]))  # type: ignore[no-any-return]
    if jnp.issubdtype(value.dtype, jnp.complexfloating):
        value = jnp.stack([value.real, value.imag], axis=-1)
    elif value.dtype == np.bool_:
        value = value.astype(np.uint8)
    elif not _is_standard(value.dtype):
        value = value.astype(_stand_in(value.dtype))
    unsigned = UNSIGNED[value.dtype.itemsize]
    bits = value if value.dtype == unsigned else jax.lax.bitcast_convert_type(value, unsigned)
    size = math.prod(bits.shape[1:])
    return bits.reshape(lanes, size).astype(LARGE if unsigned == LARGE else SMALL)


def unpack(words: jax.Array, type_: ArrayType) -> Any:
    """Return words [lanes, width] as values of a storage type, [lanes, ...]: the inverse of `pack`."""
    dtype = jnp.dtype(type_.dtype)
    shape = (words.shape[0], *type_.shape)
    if words.dtype not in (SMALL, LARGE):
        return words.reshape(shape)
    if jnp.issubdtype(dtype, jnp.complexfloating):
        part = _bits(dtype)
        halves = _from_bits(words, part).reshape(*shape, 2)
        return jax.lax.complex(halves[..., 0], halves[..., 1])
    if dtype == np.bool_:
        return (words != 0).reshape(shape)
    if not _is_standard(dtype):
        return _from_bits(words, _stand_in(dtype)).reshape(shape).astype(dtype)
    return _from_bits(words, dtype).reshape(shape)


def _from_bits(words: jax.Array, dtype: Dtype) -> jax.Array:
    bits = words.astype(UNSIGNED[dtype.itemsize])
    return bits if bits.dtype == dtype else jax.lax.bitcast_convert_type(bits, dtype)


def _bits(dtype: Dtype) -> Dtype:
    """Return the dtype whose bits one word holds: of a complex number its real or imaginary part."""
    if jnp.issubdtype(dtype, jnp.complexfloating):
        return np.dtype(np.float32 if dtype.itemsize == 8 else np.float64)
    return dtype if _is_standard(dtype) else _stand_in(dtype)


def _per_element(dtype: Dtype) -> int:
    return 2 if jnp.issubdtype(dtype, jnp.complexfloating) else 1


def _is_standard(dtype: Dtype) -> bool:
    """Whether the bits of a dtype fill its bytes, as they do in all but JAX's narrowest types."""
    finfo: Any = jnp.finfo  # untyped in some releases of JAX
    return dtype.isbuiltin == 1 or (jnp.issubdtype(dtype, jnp.floating) and int(finfo(dtype).bits) >= 8)


def _stand_in(dtype: Dtype) -> Dtype:
    """Return a wider dtype that holds every value of a narrow one whose bits do not fill a byte (int4, float4, ...)."""
    return np.dtype(np.int32 if jnp.issubdtype(dtype, jnp.integer) else np.float32)
