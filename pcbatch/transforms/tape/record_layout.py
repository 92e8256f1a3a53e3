"""The layout of records: values of one dtype side by side in a row, so that a visit appends them in one piece.

The rows of active lanes are moved to the front of a window, and the whole window is written behind the last record.
The next visit overwrites the rows of inactive lanes; the buffers have room for one window more than for records.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from pcbatch.ir.types import ArrayType
from pcbatch.lowering.typing.jax_types import storage_type
from pcbatch.runtime.vm.lane_window import Window, first_lanes

WORD = np.dtype(np.int32)  # the dtype of small integers and truth values in a record


def stored_as(type_: ArrayType) -> tuple[tuple[int, ...], Any]:
    """The shape and the dtype of a value of this type in a record."""
    stored = storage_type(type_)
    return stored.shape, jnp.dtype(stored.dtype)


def struct_of(type_: ArrayType, width: tuple[int, ...]) -> Any:
    """The type of values of this type, with axes in front."""
    shape, dtype = stored_as(type_)
    make: Any = jax.ShapeDtypeStruct  # untyped in some releases of JAX
    return make((*width, *shape), dtype)


@dataclass(frozen=True, slots=True)
class RecordColumn:
    """The columns `start` to `stop` of a buffer, which hold one value."""

    buffer: str
    start: int
    stop: int
    shape: tuple[int, ...]
    dtype: Any


@dataclass(frozen=True, slots=True)
class RecordLayout:
    """The columns of a record by the value's key, and the width and dtype of each buffer."""

    columns: Mapping[str, RecordColumn]
    buffers: Mapping[str, tuple[int, Any]]

    def empty(self, rows: int) -> dict[str, Any]:
        """Buffers of zeros with `rows` rows."""
        return {name: jnp.zeros((rows, width), dtype) for name, (width, dtype) in self.buffers.items()}

    def packed(self, values: Mapping[str, Any]) -> dict[str, Any]:
        """Pack values [width, ...] into rows [width, columns] of each buffer."""
        parts: dict[str, list[Any]] = {name: [] for name in self.buffers}
        for key, column in self.columns.items():
            value = values[key]
            parts[column.buffer].append(value.reshape(value.shape[0], -1).astype(self.buffers[column.buffer][1]))
        return {name: jnp.concatenate(cols, axis=1) if len(cols) > 1 else cols[0] for name, cols in parts.items()}

    def read(self, buffers: Mapping[str, Any], row: jax.Array) -> dict[str, Any]:
        """The values in the rows `row`, int32[width]; [width, ...] each."""
        return self.unpacked({name: buffers[name].at[row].get(mode="clip") for name in self.buffers})

    def unpacked(self, rows: Mapping[str, Any]) -> dict[str, Any]:
        """Undo `packed`: the values, [width, ...] each, of rows of each buffer."""
        return {key: self._column(rows[c.buffer], c) for key, c in self.columns.items()}

    def _column(self, rows: Any, column: RecordColumn) -> Any:
        part = rows[:, column.start : column.stop]
        return part.reshape(rows.shape[0], *column.shape).astype(column.dtype)


def record_layout(types: Mapping[str, tuple[tuple[int, ...], Any]]) -> RecordLayout:
    """Lay out a record of values of these shapes and dtypes, by key."""
    columns: dict[str, RecordColumn] = {}
    widths: dict[str, tuple[int, Any]] = {}
    for key, (shape, dtype) in types.items():
        stored = WORD if _is_small(np.dtype(dtype)) else np.dtype(dtype)
        start = widths[stored.name][0] if stored.name in widths else 0
        stop = start + math.prod(shape)
        columns[key] = RecordColumn(stored.name, start, stop, tuple(shape), dtype)
        widths[stored.name] = stop, stored
    return RecordLayout(columns, widths)


def _is_small(dtype: np.dtype[Any]) -> bool:
    return dtype == np.bool_ or (np.issubdtype(dtype, np.integer) and np.can_cast(dtype, WORD))


def reordered(rows: Any, order: jax.Array | None) -> Any:
    """The rows of a window in the order that `active_first` gives."""
    return rows if order is None else rows.at[order].get(mode="clip")


def append(buffer: jax.Array, end: jax.Array, rows: Any) -> jax.Array:
    """Write the rows of a window behind the first `end` rows of a buffer."""
    return jax.lax.dynamic_update_slice_in_dim(buffer, rows, end, 0)


def active_first(window: Window, mask: jax.Array) -> jax.Array | None:
    """int32[width]: the positions in the mask, then any others. None: the active lanes are at the front already."""
    if window.width == 1 or (not window.dense and mask is window.here):
        return None
    return first_lanes(mask, window.width)
