"""Records as rows: values of one dtype side by side, so that a visit appends them in one piece.

The places of a window that take part are brought together at the front, and the whole window is written where the
records end. What stands behind the last real one is overwritten by the next visit; the buffers have room for one
window more than for records.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from pcbatch.runtime.vm.lane_window import Window, first_lanes

WORD = np.dtype(np.int32)  # what small integers and truth values are kept as


@dataclass(frozen=True, slots=True)
class RecordColumn:
    """Where a value stands in a row of its buffer."""

    buffer: str
    start: int
    stop: int
    shape: tuple[int, ...]
    dtype: Any


@dataclass(frozen=True, slots=True)
class Rows:
    """The plan of a row: columns by name, and the width and dtype of each buffer."""

    columns: Mapping[str, RecordColumn]
    buffers: Mapping[str, tuple[int, Any]]

    def empty(self, rows: int) -> dict[str, Any]:
        """Buffers with so many rows."""
        return {name: jnp.zeros((rows, width), dtype) for name, (width, dtype) in self.buffers.items()}

    def packed(self, values: Mapping[str, Any]) -> dict[str, Any]:
        """[width, columns] for each buffer, of values [width, ...]."""
        parts: dict[str, list[Any]] = {name: [] for name in self.buffers}
        for key, column in self.columns.items():
            value = values[key]
            parts[column.buffer].append(value.reshape(value.shape[0], -1).astype(self.buffers[column.buffer][1]))
        return {name: jnp.concatenate(found, axis=1) if len(found) > 1 else found[0] for name, found in parts.items()}

    def read(self, buffers: Mapping[str, Any], row: jax.Array) -> dict[str, Any]:
        """The values in some rows, [width, ...] each."""
        found = {name: buffers[name].at[row].get(mode="clip") for name in self.buffers}
        return {key: self._column(found[c.buffer], c) for key, c in self.columns.items()}

    def _column(self, rows: Any, column: RecordColumn) -> Any:
        part = rows[:, column.start : column.stop]
        return part.reshape(rows.shape[0], *column.shape).astype(column.dtype)


def plan(types: Mapping[str, tuple[tuple[int, ...], Any]]) -> Rows:
    """Columns for values of these shapes and dtypes."""
    columns: dict[str, RecordColumn] = {}
    widths: dict[str, tuple[int, Any]] = {}
    for key, (shape, dtype) in types.items():
        kept = WORD if _is_small(np.dtype(dtype)) else np.dtype(dtype)
        start = widths[kept.name][0] if kept.name in widths else 0
        stop = start + math.prod(shape)
        columns[key] = RecordColumn(kept.name, start, stop, tuple(shape), dtype)
        widths[kept.name] = stop, kept
    return Rows(columns, widths)


def _is_small(dtype: np.dtype[Any]) -> bool:
    return dtype == np.bool_ or (np.issubdtype(dtype, np.integer) and np.can_cast(dtype, WORD))


def ordered(rows: Any, order: jax.Array | None) -> Any:
    """The rows of a window, those that take part first; `order` as `together` gives it."""
    return rows if order is None else rows.at[order].get(mode="clip")


def append(buffer: jax.Array, end: jax.Array, rows: Any) -> jax.Array:
    """The buffer with the rows of a window behind its `end` records."""
    return jax.lax.dynamic_update_slice_in_dim(buffer, rows, end, 0)


def together(window: Window, mask: jax.Array) -> jax.Array | None:
    """int32[width]: the places in the mask, and then any; None: they stand at the front already."""
    if not window.dense and mask is window.here:
        return None
    return first_lanes(mask, window.width)
