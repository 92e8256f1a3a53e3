"""Touches: gathers, slices and scatters of arrays in memory, as loads and stores of the elements that they name.

Registers with many elements and tables that all lanes share are often far larger than the part that an equation reads
or writes. So the places of its elements are computed, and they alone are moved.

    before:  xs:f32[32,1000], whole; y = gather xs[lane, i]; scatter z into xs[lane, j]
    after:   load of 32 elements; store of 32 elements under the mask
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import prod
from typing import Any

import jax
import jax.numpy as jnp

from pcbatch.runtime.kernel.memory import KernelRows, within
from pcbatch.runtime.kernel.rules import Unsupported, padded_shape
from pcbatch.runtime.kernel.rules.indexing import OPERATIONS, clamped, fill_value, inside, mode, operation
from pcbatch.runtime.kernel.rules.padding import along, filled, picked, reshaped, where

LOADS = ("gather", "dynamic_slice", "slice")
STORES = tuple(OPERATIONS)


@dataclass(frozen=True, slots=True)
class Columns:
    """The parts of index vectors: an array [..., n] as n arrays [...]."""

    parts: tuple[Any, ...]

    def whole(self) -> jax.Array:
        """Return the array [..., n], its last axis padded."""
        wide = [jnp.expand_dims(x, -1) for x in self.parts]
        size = padded_shape((len(wide),))[0]
        place = along(size, wide[0].ndim - 1, wide[0].ndim)
        out = jnp.broadcast_to(wide[0], (*wide[0].shape[:-1], size))
        for k, x in enumerate(wide[1:], 1):
            out = where(place == k, x, out)
        return out


def columns_of(x: jax.Array | Columns, count: int) -> tuple[Any, ...]:
    """Return the parts of index vectors [..., count]."""
    if isinstance(x, Columns):
        return x.parts
    last = x.ndim - 1
    return tuple(reshaped(picked(x, last, k) if x.shape[last] > 1 else x, x.shape[:last]) for k in range(count))


def is_load(eqn: Any) -> bool:
    """Return whether an equation reads a part of its first operand."""
    return eqn.primitive.name in LOADS


def is_store(eqn: Any) -> bool:
    """Return whether an equation stores into its first operand."""
    return eqn.primitive.name in STORES


def puts_index_together(eqn: Any) -> bool:
    """Return whether an equation concatenates columns to index vectors, which touches take as columns."""
    out = eqn.outvars[0].aval
    if eqn.primitive.name != "concatenate" or eqn.params["dimension"] != out.ndim - 1:
        return False
    return jnp.issubdtype(out.dtype, jnp.integer) and all(v.aval.ndim > 1 and v.aval.shape[-1] == 1 for v in eqn.invars)


def load(eqn: Any, rows: KernelRows, operands: Sequence[Any]) -> jax.Array:
    """Return what an equation reads of an array in memory."""
    match eqn.primitive.name:
        case "gather":
            return _gather(eqn, rows, operands[0])
        case "dynamic_slice":
            shape, sizes = rows.shape, eqn.params["slice_sizes"]
            starts = [clamped(s, n - w) for s, n, w in zip(operands, shape, sizes, strict=True)]
            return _window(rows, starts, [1] * len(sizes), sizes)
        case _:
            p = eqn.params
            sizes = eqn.outvars[0].aval.shape
            return _window(rows, p["start_indices"], p["strides"] or [1] * len(sizes), sizes)


def _window(rows: KernelRows, starts: Sequence[Any], steps: Sequence[int], sizes: Sequence[int]) -> jax.Array:
    full = padded_shape(sizes)
    places = [s + along(n, k, len(full)) * step for k, (s, n, step) in enumerate(zip(starts, full, steps, strict=True))]
    return rows.load(places, within(full, sizes), full)


def _gather(eqn: Any, rows: KernelRows, indices: Any) -> jax.Array:
    d, out = eqn.params["dimension_numbers"], eqn.outvars[0].aval
    fills, _ = mode(eqn.params["mode"])
    kept = [k for k in range(len(rows.shape)) if k not in (*d.collapsed_slice_dims, *d.operand_batching_dims)]
    axes = _Axes(
        out.shape,
        dict(zip(kept, d.offset_dims, strict=True)),
        d.start_index_map,
        dict(zip(d.operand_batching_dims, d.start_indices_batching_dims, strict=True)),
    )
    places, valid = axes.places(rows.shape, eqn.params["slice_sizes"], columns_of(indices, len(axes.indexed)))
    mask = within(axes.full, out.shape)
    if not fills:
        return rows.load(places, mask, axes.full)
    found = rows.load(places, mask & valid, axes.full)
    fill = filled((), fill_value(eqn.params["fill_value"], found.dtype), found.dtype)
    return where(valid, found, fill)


def scatter(eqn: Any, rows: KernelRows, operands: Sequence[Any]) -> None:
    """Store what an equation scatters into an array in memory.

    Args:
        eqn: The equation.
        rows: The array.
        operands: The indices and the updates.
    """
    indices, updates = operands
    d, shape = eqn.params["dimension_numbers"], eqn.invars[2].aval.shape
    _, clips = mode(eqn.params["mode"])
    kept = [k for k in range(len(rows.shape)) if k not in (*d.inserted_window_dims, *d.operand_batching_dims)]
    axes = _Axes(
        shape,
        dict(zip(kept, d.update_window_dims, strict=True)),
        d.scatter_dims_to_operand_dims,
        dict(zip(d.operand_batching_dims, d.scatter_indices_batching_dims, strict=True)),
    )
    sizes = [shape[axes.offsets[k]] if k in axes.offsets else 1 for k in range(len(rows.shape))]
    places, valid = axes.places(rows.shape, sizes, columns_of(indices, len(axes.indexed)))
    mask = within(axes.full, shape)
    mask = mask if clips else mask & valid
    if eqn.primitive.name != "scatter":
        updates = operation(eqn)(rows.load(places, mask, axes.full), updates)
    rows.store(places, mask, updates)


def refusal(eqn: Any) -> str | None:
    """Return why a touch cannot be made in memory, None if it can."""
    try:
        if eqn.primitive.name in ("gather", *STORES):
            mode(eqn.params["mode"])
        if not is_store(eqn):
            return None
        operation(eqn)
    except Unsupported as refused:
        return refused.reason
    if eqn.outvars[0].aval.dtype == jnp.bool_ and eqn.primitive.name != "scatter":
        return "arithmetic of truth values"
    places = prod(eqn.invars[1].aval.shape[1:-1])
    if places > 1 and not eqn.params["unique_indices"]:
        return f"stores at {places} places of one lane's array, of which several may be one"
    return None


@dataclass(frozen=True, slots=True)
class _Axes:
    """The axes of a gather's result, or of a scatter's updates.

    Attributes:
        shape: their true lengths.
        offsets: axis of the array -> the axis that runs over a window of it.
        indexed: the axes of the array that the parts of an index vector are for.
        beside: axis of the array -> the axis of the indices (without the last) that runs along with it.
    """

    shape: tuple[int, ...]
    offsets: dict[int, int]
    indexed: tuple[int, ...]
    beside: dict[int, int]

    @property
    def full(self) -> tuple[int, ...]:
        """The padded shape."""
        return padded_shape(self.shape)

    def places(
        self, shape: Sequence[int], sizes: Sequence[int], parts: Sequence[jax.Array]
    ) -> tuple[list[jax.Array], jax.Array]:
        """Return the coordinates in an array of `shape`, moved into it, of windows of `sizes`; and where they need not
        be moved. All broadcast to `full`."""
        rank = len(self.full)
        batches = [k for k in range(rank) if k not in self.offsets.values()]
        valid: jax.Array = jnp.ones((1,) * rank, jnp.bool_)
        out = []
        for axis, (n, w) in enumerate(zip(shape, sizes, strict=True)):
            if w > n:
                raise Unsupported("a window larger than its array")
            at: Any = jnp.zeros((1,) * rank, jnp.int32)
            if axis in self.beside:
                at = along(self.full[batches[self.beside[axis]]], batches[self.beside[axis]], rank)
            if axis in self.indexed:
                start = parts[self.indexed.index(axis)]
                start = reshaped(start, self._spread(start.shape, batches))
                valid = valid & inside(start, n - w)
                at = at + clamped(start, n - w)
            if axis in self.offsets:
                at = at + along(self.full[self.offsets[axis]], self.offsets[axis], rank)
            out.append(at)
        return out, valid

    def _spread(self, lead: Sequence[int], batches: Sequence[int]) -> list[int]:
        """The axes of the indices at their places among all axes."""
        lengths = dict(zip(batches, lead, strict=True))
        return [lengths.get(k, 1) for k in range(len(self.full))]
