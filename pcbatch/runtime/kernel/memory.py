"""Arrays in the memory of the device, read and written inside a kernel by the lanes of a tile, each at its own place.

All arrays are flat. A masked access of Triton touches nothing; interpret mode writes the old value at the place that
it is given, so masked places are those of a spare element at the end of each array (`SPARE`).

Triton deals the elements of a value to threads as it likes, and of a value with fewer elements than threads each thread
has a copy, of which one stores. So what one thread has stored, another may load, and the warps of a tile need not be at
the same place: `Order` puts barriers between accesses that must not be exchanged.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax.experimental.pallas import triton

from pcbatch.runtime.kernel.rules import padded_shape
from pcbatch.runtime.kernel.rules.padding import along
from pcbatch.runtime.vm.word_packing import LARGE, SMALL, UNSIGNED

SPARE = 1  # elements behind each array, in interpret mode


def stored_dtype(dtype: Any) -> Any:
    """Return the dtype of an array in memory: truth values are numbers there."""
    return jnp.dtype(jnp.int32) if jnp.dtype(dtype) == np.bool_ else jnp.dtype(dtype)


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


SCALAR = Places((), 1)


@dataclass(slots=True)
class Order:
    """The order of accesses by different threads of a tile, while a kernel is traced.

    Attributes:
        barrier: Makes all threads of the tile wait for each other, and shows them what each has stored.
        mutable: The arrays that are stored into at all.
        loaded: Those of them that were read since the last barrier.
        stored: Those that were written.
    """

    barrier: Callable[[], None]
    mutable: frozenset[str]
    loaded: set[str] = field(default_factory=set)
    stored: set[str] = field(default_factory=set)

    def begin(self) -> None:
        """Begin a branch or a turn of a loop: anything may have come before it."""
        self.loaded, self.stored = set(self.mutable), set(self.mutable)

    def load(self, name: str) -> None:
        """Come before a load."""
        if name in self.stored:
            self._wait()
        if name in self.mutable:
            self.loaded.add(name)

    def store(self, name: str, again: bool = False) -> None:
        """Come before a store; `again`: it may be to a place that was stored into since the last barrier."""
        if name in self.loaded or (again and name in self.stored):
            self._wait()
        self.stored.add(name)

    def _wait(self) -> None:
        self.barrier()
        self.loaded.clear()
        self.stored.clear()


@dataclass(frozen=True, slots=True)
class KernelMemory:
    """The flat arrays of a kernel by name. Methods are traced inside of it."""

    refs: Mapping[str, Any]
    order: Order

    def load(self, name: str, places: Places, rows: jax.Array, mask: jax.Array) -> jax.Array:
        """Return the values at some rows, [rows, ...] padded, in the dtype of memory; zeros where the mask is false."""
        return self.load_at(name, *places(rows, mask))

    def store(self, name: str, places: Places, rows: jax.Array, mask: jax.Array, value: jax.Array) -> None:
        """Write values [rows, ...] (padded) at some rows where the mask is true."""
        self.store_at(name, *places(rows, mask), value)

    def load_at(self, name: str, at: jax.Array, on: jax.Array) -> jax.Array:
        """Return the elements at some places, int32, where `on`, bool, is true; else zeros."""
        self.order.load(name)
        ref = self.refs[name]
        other = jnp.zeros((), ref.dtype)
        return triton.load(ref.at[jnp.where(on, at, ref.shape[0] - 1)], mask=on, other=other)

    def store_at(self, name: str, at: jax.Array, on: jax.Array, value: jax.Array, again: bool = False) -> None:
        """Write elements at some places, int32, where `on`, bool, is true.

        `again`: some may be places that the same visit of a block has written before.
        """
        self.order.store(name, again)
        ref = self.refs[name]
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


@dataclass(frozen=True, slots=True)
class KernelRows:
    """An array in memory as the jaxpr of a block sees it: of a register the rows of a tile's lanes, [tile, ...].

    Attributes:
        memory: The arrays of the kernel.
        name: Its name there.
        shape: The shape that the jaxpr has for it.
        strides: Elements from one place to the next along each axis.
        dtype: Its dtype in the jaxpr.
        first: The number of the row at place 0 of the first axis, int32[]; None: the array is not of lanes.
        lanes: The number of rows that there are.
    """

    memory: KernelMemory
    name: str
    shape: tuple[int, ...]
    strides: tuple[int, ...]
    dtype: Any
    first: jax.Array | None = None
    lanes: int = 0

    def load(self, places: Sequence[Any], on: jax.Array, shape: Sequence[int]) -> jax.Array:
        """Return the elements at some places, int32 for each axis, that broadcast to `shape`; zeros where not `on`."""
        return from_stored(self.memory.load_at(self.name, *self._at(places, on, shape)), self.dtype)

    def store(self, places: Sequence[Any], on: jax.Array, value: jax.Array) -> None:
        """Write elements at some places where `on` is true."""
        self.memory.store_at(self.name, *self._at(places, on, value.shape), to_stored(value), again=True)

    def whole(self) -> jax.Array:
        """Return all elements, each axis padded."""
        full = padded_shape(self.shape)
        return self.load([along(n, k, len(full)) for k, n in enumerate(full)], within(full, self.shape), full)

    def _at(self, places: Sequence[Any], on: jax.Array, shape: Sequence[int]) -> tuple[jax.Array, jax.Array]:
        at: Any = jnp.zeros((), jnp.int32)
        if self.first is not None:
            at = self.first * self.strides[0]
            if self.lanes % self.shape[0]:  # the last tile has fewer lanes
                on = on & (self.first + places[0] < self.lanes)
        for place, stride in zip(places, self.strides, strict=True):
            at = at + place * np.int32(stride)
        return jnp.broadcast_to(at, tuple(shape)), jnp.broadcast_to(on, tuple(shape))


def within(padded: Sequence[int], shape: Sequence[int]) -> jax.Array:
    """Return where a padded array has elements of its true shape; a mask that broadcasts against it."""
    on: jax.Array = jnp.ones((1,) * len(padded), jnp.bool_)
    for axis, (room, n) in enumerate(zip(padded, shape, strict=True)):
        if room != n:
            on = on & (along(room, axis, len(padded)) < n)
    return on


def in_order(shape: Sequence[int]) -> tuple[int, ...]:
    """Return the strides of an array whose last axis is contiguous."""
    return tuple(math.prod(shape[k + 1 :]) for k in range(len(shape)))


def to_stored(value: jax.Array) -> jax.Array:
    """Return a value in the dtype of memory."""
    return value.astype(stored_dtype(value.dtype))


def from_stored(value: jax.Array, dtype: Any) -> jax.Array:
    """Return a value that was stored, in its own dtype, which may be given by name."""
    return value != 0 if jnp.dtype(dtype) == np.bool_ else value.astype(dtype)


def to_words(value: jax.Array, words: Any) -> jax.Array:
    """Return a value as words of frames, one for each element, as `word_packing.pack` does."""
    if words not in (SMALL, LARGE):
        return value
    if value.dtype == np.bool_:
        value = value.astype(jnp.int32)
    bits = UNSIGNED[value.dtype.itemsize]
    return (value if value.dtype == bits else jax.lax.bitcast_convert_type(value, bits)).astype(words)


def from_words(words: jax.Array, dtype: Any) -> jax.Array:
    """Return the value of words of frames, of a dtype that may be given by name: the inverse of `to_words`."""
    if words.dtype not in (SMALL, LARGE):
        return words
    dtype = jnp.dtype(dtype)
    if dtype == np.bool_:
        return words != 0
    bits = words.astype(UNSIGNED[dtype.itemsize])
    return bits if bits.dtype == dtype else jax.lax.bitcast_convert_type(bits, dtype)
