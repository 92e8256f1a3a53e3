"""Sorts as loops for one lane: those of XLA:CPU are calls of a library, which no native function holds."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from pcbatch.containers.merge_sort import comparable, is_less, merge_order


def sort(*operands: Any, dimension: int, is_stable: bool, num_keys: int) -> list[jax.Array]:
    """Sort along an axis by the first operands, as `jax.lax.sort` does; always stable."""
    if operands[0].size == 0:
        return list(operands)
    rows = [jnp.moveaxis(x, dimension, -1) for x in operands]
    shape, size = rows[0].shape, rows[0].shape[-1]
    flat = [x.reshape(-1, size) for x in rows]
    out = _by_rows(lambda row: _sorted_row(row, num_keys), flat)
    return [jnp.moveaxis(x.reshape(shape), -1, dimension) for x in out]


def _by_rows(function: Callable[[list[Any]], list[Any]], arrays: Sequence[Any]) -> list[Any]:
    """Return arrays [rows, ...] of what a function gives of the rows of arrays [rows, ...]."""
    if arrays[0].shape[0] == 1:
        return [x[None] for x in function([x[0] for x in arrays])]
    return list(jax.lax.map(lambda row: tuple(function(list(row))), tuple(arrays)))


def _sorted_row(row: Sequence[Any], num_keys: int) -> list[Any]:
    order = merge_order([comparable(x) for x in row[:num_keys]], is_less)
    return [x[order] for x in row]


def top_k(operand: Any, *, k: int, axis: int = -1, **_: Any) -> list[jax.Array]:
    """Return the k largest elements along an axis and their indices, as `jax.lax.top_k` does."""
    rows = jnp.moveaxis(operand, axis, -1)
    shape = (*rows.shape[:-1], k)

    def of_row(row: list[Any]) -> list[Any]:
        order = merge_order([_in_total_order(row[0])], lambda a, b: b < a)[:k]
        return [row[0][order], order]

    values, indices = _by_rows(of_row, [rows.reshape(-1, rows.shape[-1])])
    return [jnp.moveaxis(x.reshape(shape), -1, axis) for x in (values, indices)]


def _in_total_order(key: Any) -> Any:
    """Return numbers whose order is the total order of a key's: -0.0 comes before 0.0, and NaN last."""
    if not jnp.issubdtype(key.dtype, jnp.floating):
        return comparable(key)
    wide = key if key.dtype.itemsize >= 4 else key.astype(jnp.float32)
    integer = np.dtype(f"int{8 * wide.dtype.itemsize}")
    bits = jax.lax.bitcast_convert_type(wide, integer)
    return jnp.where(bits < 0, bits ^ np.asarray(np.iinfo(integer).max, integer), bits)
