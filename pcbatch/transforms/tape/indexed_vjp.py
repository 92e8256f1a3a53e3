"""Reads and writes of a part of a register, undone in the cotangents of the register, in place.

`y = xs[i]` is undone by `ct_xs[i] += ct_y`; `xs[i] = v` by `ct_v = ct_xs[i]; ct_xs[i] = 0`. Lanes that take no part get
an index out of range.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import jax
import jax.numpy as jnp

from pcbatch.runtime.vm.indexed_access import of_all_lanes, targets
from pcbatch.runtime.vm.lane_window import Window

DROP = jax.lax.GatherScatterMode.FILL_OR_DROP


def add_loaded(
    eqn: Any, array: Any, indices: Sequence[Any], cotangent: Any, window: Window, mask: jax.Array
) -> jax.Array:
    """Cotangents [lanes, ...] of a register of which `eqn` has loaded a part at `indices` [width, ...]."""
    if eqn.primitive.name == "dynamic_slice":
        where = _vector([_clipped(i, size, n) for i, size, n in zip(indices, *_sizes(eqn, array), strict=True)])
        axes = tuple(range(array.ndim - 1))
        numbers = jax.lax.ScatterDimensionNumbers(axes, (), axes)
    else:
        given = eqn.params["dimension_numbers"]
        where = indices[0]
        if eqn.params["mode"] == jax.lax.GatherScatterMode.CLIP:
            sizes = [(eqn.params["slice_sizes"][d], array.shape[d + 1]) for d in given.start_index_map]
            where = _vector([_clipped(where[..., k], *pair) for k, pair in enumerate(sizes)])
        numbers = jax.lax.ScatterDimensionNumbers(
            update_window_dims=given.offset_dims,
            inserted_window_dims=given.collapsed_slice_dims,
            scatter_dims_to_operand_dims=given.start_index_map,
            operand_batching_dims=given.operand_batching_dims,
            scatter_indices_batching_dims=given.start_indices_batching_dims,
        )
    there = targets(where, window, mask)
    added: jax.Array = jax.lax.scatter_add(array, there, cotangent, of_all_lanes(numbers), mode=DROP)
    return added


def _sizes(eqn: Any, array: Any) -> tuple[Sequence[int], Sequence[int]]:
    return eqn.params["slice_sizes"], array.shape[1:]


def _vector(indices: Sequence[Any]) -> Any:
    return jnp.stack([i.astype(jnp.int32) for i in indices], axis=-1)


def _clipped(index: Any, size: int, n: int) -> Any:
    return jnp.clip(index, 0, n - size)


def take_stored(eqn: Any, array: Any, indices: Any, window: Window, mask: jax.Array) -> tuple[Any, jax.Array]:
    """The cotangent of what `eqn` has stored at `indices` [width, ...] into a register, and the register's cotangents
    [lanes, ...] before."""
    numbers, where = of_all_lanes(eqn.params["dimension_numbers"]), targets(indices, window, mask)
    shape = (window.width, *eqn.invars[2].aval.shape)

    def stored(updates: Any) -> Any:
        empty = jnp.zeros(array.shape, array.dtype)
        return jax.lax.scatter_add(empty, where, updates, numbers, mode=DROP)

    described: Any = jax.ShapeDtypeStruct  # untyped in some releases of JAX
    (taken,) = jax.linear_transpose(stored, described(shape, array.dtype))(array)
    if eqn.primitive.name == "scatter-add":
        return taken, array
    return taken, jax.lax.scatter(array, where, jnp.zeros(shape, array.dtype), numbers, mode=DROP)
