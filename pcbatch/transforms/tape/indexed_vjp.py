"""Accesses of registers by index, undone in the cotangents of the register, in place.

`y = xs[i]` is undone by `ct_xs[i] += ct_y`; `xs[i] = v` by `ct_v = ct_xs[i]; ct_xs[i] = 0`. Inactive lanes get an index
out of range, which scatters drop.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, field
from typing import Any

import jax
import jax.numpy as jnp

from pcbatch.runtime.vm.indexed_access import of_all_lanes, targets
from pcbatch.runtime.vm.lane_window import Window
from pcbatch.transforms.tape.block_ssa import Load, Store

DROP = jax.lax.GatherScatterMode.FILL_OR_DROP


@dataclass
class InPlace:
    """The cotangents of registers that a block accesses by index, changed in place; a `Memory`.

    A block may also give such a register another value as a whole, after all accesses (`xs = xs[1:] ...` loads from the
    old value). The `cotangents` after the block are those of the other value; those of the old one start from zero.
    """

    cotangents: Mapping[str, Any]  # after the block, by register: [lanes, ...]
    window: Window
    mask: jax.Array
    replaced: AbstractSet[str]  # registers that get another value as a whole
    arrays: dict[str, Any] = field(default_factory=dict)  # those that were changed

    def undo_load(self, step: Load, indices: Sequence[Any], cotangent: Any) -> None:
        """Add the cotangent of the loaded value, [width, ...], to that of the register."""
        array = self._of(step.register)
        self.arrays[step.register] = add_loaded(step.eqn, array, indices, cotangent, self.window, self.mask)

    def undo_store(self, step: Store, indices: Sequence[Any]) -> Any:
        """Take the cotangent of the stored value, [width, ...], out of that of the register."""
        array = self._of(step.register)
        stored, rest = take_stored(step.eqn, array, indices[0], self.window, self.mask)
        self.arrays[step.register] = rest
        return stored

    def _of(self, register: str) -> Any:
        if register in self.arrays:
            return self.arrays[register]
        array = self.cotangents[register]
        if register not in self.replaced:
            return array
        zeros = jnp.zeros((self.window.width, *array.shape[1:]), array.dtype)
        return self.window.write(array, zeros, self.mask)


def add_loaded(
    eqn: Any, array: Any, indices: Sequence[Any], cotangent: Any, window: Window, mask: jax.Array
) -> jax.Array:
    """Add the cotangent of a loaded part, [width, ...], to the cotangents of its register, `array` [lanes, ...].

    `eqn` is the gather or slice that has loaded it, at `indices` [width, ...]. The transpose of a gather is a
    scatter-add with its dimension numbers; that of a slice is one at clipped starts, with an index for each axis.
    """
    if eqn.primitive.name == "dynamic_slice":
        where = _vector([_clipped(i, size, n) for i, size, n in zip(indices, *_sizes(eqn, array), strict=True)])
        axes = tuple(range(array.ndim - 1))
        numbers = jax.lax.ScatterDimensionNumbers(axes, (), axes)
    else:
        gathered = eqn.params["dimension_numbers"]
        where = indices[0]
        if eqn.params["mode"] == jax.lax.GatherScatterMode.CLIP:
            # The scatter must drop what is out of range (inactive lanes), so the clipping is done here.
            sizes = [(eqn.params["slice_sizes"][d], array.shape[d + 1]) for d in gathered.start_index_map]
            where = _vector([_clipped(where[..., k], *pair) for k, pair in enumerate(sizes)])
        numbers = jax.lax.ScatterDimensionNumbers(
            update_window_dims=gathered.offset_dims,
            inserted_window_dims=gathered.collapsed_slice_dims,
            scatter_dims_to_operand_dims=gathered.start_index_map,
            operand_batching_dims=gathered.operand_batching_dims,
            scatter_indices_batching_dims=gathered.start_indices_batching_dims,
        )
    rows = targets(where, window, mask)
    added: jax.Array = jax.lax.scatter_add(array, rows, cotangent, of_all_lanes(numbers), mode=DROP)
    return added


def _sizes(eqn: Any, array: Any) -> tuple[Sequence[int], Sequence[int]]:
    return eqn.params["slice_sizes"], array.shape[1:]


def _vector(indices: Sequence[Any]) -> Any:
    return jnp.stack([i.astype(jnp.int32) for i in indices], axis=-1)


def _clipped(index: Any, size: int, n: int) -> Any:
    return jnp.clip(index, 0, n - size)


def take_stored(eqn: Any, array: Any, indices: Any, window: Window, mask: jax.Array) -> tuple[Any, jax.Array]:
    """Take the cotangent of a stored value out of the cotangents of its register, `array` [lanes, ...].

    `eqn` is the scatter that has stored it, at `indices` [width, ...]. Returns the cotangent, [width, ...], and the
    cotangents of the register before the store, [lanes, ...].
    """
    numbers, where = of_all_lanes(eqn.params["dimension_numbers"]), targets(indices, window, mask)
    shape = (window.width, *eqn.invars[2].aval.shape)

    def stored(updates: Any) -> Any:
        empty = jnp.zeros(array.shape, array.dtype)
        return jax.lax.scatter_add(empty, where, updates, numbers, mode=DROP)

    struct: Any = jax.ShapeDtypeStruct  # untyped in some releases of JAX
    (taken,) = jax.linear_transpose(stored, struct(shape, array.dtype))(array)
    if eqn.primitive.name == "scatter-add":
        return taken, array
    return taken, jax.lax.scatter(array, where, jnp.zeros(shape, array.dtype), numbers, mode=DROP)
