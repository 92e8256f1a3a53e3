"""Arrays in the memory of the device, read and written inside a kernel by the lanes of a tile, each at its own place.

All arrays are flat. A masked access of Triton touches nothing; interpret mode writes the old value at the place that
it is given, so masked places are those of a spare element at the end of each array (`SPARE`).
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax.experimental.pallas import triton

from pcbatch.runtime.kernel.rules import padded_shape
from pcbatch.runtime.vm.word_packing import LARGE, SMALL

SPARE = 1  # elements behind each array, in interpret mode
_UNSIGNED = {1: jnp.uint8, 2: jnp.uint16, 4: jnp.uint32, 8: jnp.uint64}


def stored_dtype(dtype: Any) -> Any:
    """Return the dtype of an array in memory: truth values are numbers there."""
    return jnp.dtype(jnp.int32) if dtype == np.bool_ else jnp.dtype(dtype)


@dataclass(frozen=True, slots=True)
class Places:
    """The places of one value for each row of an array: `row * row_stride + offset + element * stride`.

    Elements are numbered in row-major order of the value's true shape.
    """

    shape: tuple[int, ...]
    row_stride: int
    stride: int = 1
    offset: int = 0

    def __call__(self, rows: jax.Array, mask: jax.Array) -> tuple[jax.Array, jax.Array]:
        """Return the places of the values at some rows, and which of them are to be touched, [rows, ...] padded.

        Args:
            rows: int32[rows].
            mask: bool[rows].
        """
        full = padded_shape((*rows.shape, *self.shape))
        lead = rows.shape + (1,) * len(self.shape)
        at = jnp.broadcast_to(rows.reshape(lead) * self.row_stride + self.offset, full)
        on = jnp.broadcast_to(mask.reshape(lead), full)
        stride = self.stride
        for axis in reversed(range(len(self.shape))):
            here = jax.lax.broadcasted_iota(jnp.int32, full, axis + rows.ndim)
            at, on = at + here * stride, on & (here < self.shape[axis])
            stride *= self.shape[axis]
        return at, on


@dataclass(frozen=True, slots=True)
class Memory:
    """The flat arrays of a kernel by name. Methods are traced inside of it."""

    refs: Mapping[str, Any]

    def load(self, name: str, places: Places, rows: jax.Array, mask: jax.Array) -> jax.Array:
        """Return the values at some rows, [rows, ...] padded, in the dtype of memory; zeros where the mask is false."""
        ref = self.refs[name]
        at, on = places(rows, mask)
        other = jnp.zeros((), ref.dtype)
        return triton.load(ref.at[jnp.where(on, at, ref.shape[0] - 1)], mask=on, other=other)

    def store(self, name: str, places: Places, rows: jax.Array, mask: jax.Array, value: jax.Array) -> None:
        """Write values [rows, ...] (padded) at some rows where the mask is true."""
        ref = self.refs[name]
        at, on = places(rows, mask)
        value = jnp.broadcast_to(value.astype(ref.dtype), at.shape)
        triton.store(ref.at[jnp.where(on, at, ref.shape[0] - 1)], value, mask=on)

    def whole(self, name: str, shape: tuple[int, ...], dtype: Any) -> jax.Array:
        """Return an array that all lanes share, padded, in its own dtype."""
        zero = jnp.zeros((1,), jnp.int32)
        found = self.load(name, Places(shape, 0), zero, zero == 0)
        return from_stored(found.reshape(padded_shape(shape)), dtype)

    def taken(self, name: str, count: jax.Array) -> jax.Array:
        """Add to a counter of one element that all tiles share; return what it was before."""
        return triton.atomic_add(self.refs[name], (count * 0,), count)  # type: ignore[no-any-return]


def to_stored(value: jax.Array) -> jax.Array:
    """Return a value in the dtype of memory."""
    return value.astype(stored_dtype(value.dtype))


def from_stored(value: jax.Array, dtype: Any) -> jax.Array:
    """Return a value that was stored, in its own dtype."""
    return value != 0 if dtype == np.bool_ else value.astype(dtype)


def to_words(value: jax.Array, words: Any) -> jax.Array:
    """Return a value as words of frames, one for each element, as `word_packing.pack` does."""
    if words not in (SMALL, LARGE):
        return value
    if value.dtype == np.bool_:
        value = value.astype(jnp.int32)
    bits = _UNSIGNED[value.dtype.itemsize]
    return (value if value.dtype == bits else jax.lax.bitcast_convert_type(value, bits)).astype(words)


def from_words(words: jax.Array, dtype: Any) -> jax.Array:
    """Return the value of words of frames: the inverse of `to_words`."""
    if words.dtype not in (SMALL, LARGE):
        return words
    if dtype == np.bool_:
        return words != 0
    dtype = jnp.dtype(dtype)
    bits = words.astype(_UNSIGNED[dtype.itemsize])
    return bits if bits.dtype == dtype else jax.lax.bitcast_convert_type(bits, dtype)


def size_of(shape: tuple[int, ...]) -> int:
    """Return the number of elements of a shape."""
    return math.prod(shape)
