"""Frames: the values that a lane saves while it calls, one row of words per open call.

There is one buffer [rows * lanes, width] for each kind of word; the row of lane `l` at depth `d` is `d * lanes + l`, so
that stacks grow at the end. Row 0 belongs to no body: it holds the return address of the outermost one. A body at depth
d keeps its variables in row d + 1, and beside them, in column 0, the return address of its callee: a call writes one
row. Variables of different bodies share columns.

Rows are written with indices out of range for lanes that write nothing, which `mode="drop"` ignores.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from pcbatch.ir.analysis.def_use import edges, pops, pushes
from pcbatch.ir.analysis.liveness import activation
from pcbatch.ir.stack import PushJump, StackBlock, StackProgram
from pcbatch.ir.types import ArrayType
from pcbatch.lowering.typing.jax_types import storage_type
from pcbatch.runtime.vm import word_packing
from pcbatch.runtime.vm.lane_window import Window

Parts = Mapping[tuple[int, int], jax.Array]  # first column, and the one after the last -> words
RETURN_COLUMN = 1  # words before the variables: the return address
NAMES = {word_packing.SMALL: "frames", word_packing.LARGE: "frames64"}  # state keys


@dataclass(frozen=True, slots=True)
class Column:
    """The columns of a row that hold one variable."""

    buffer: str
    start: int
    stop: int
    type: ArrayType  # storage type


@dataclass(frozen=True, slots=True)
class Frames:
    """The layout of the rows of frames of one program that calls."""

    columns: Mapping[str, Column]
    widths: Mapping[str, int]  # buffer -> words in a row

    def dtype(self, buffer: str) -> np.dtype[Any]:
        """Return the dtype of a buffer's words."""
        float_name = buffer.partition(":")[2]
        if float_name:
            return jnp.dtype(float_name)
        return word_packing.SMALL if buffer == NAMES[word_packing.SMALL] else word_packing.LARGE

    def bytes(self) -> int:
        """Return the bytes of one row of all buffers."""
        return sum(width * self.dtype(name).itemsize for name, width in self.widths.items())

    def empty(self, lanes: int, depth: int, exit_: int) -> dict[str, jax.Array]:
        """Return buffers with room for `depth` nested calls, by state key; the outermost return goes to `exit_`."""
        # Beside one row for each depth from 0 to `depth`, row 0 holds the outermost return address.
        out = {name: jnp.zeros(((depth + 2) * lanes, width), self.dtype(name)) for name, width in self.widths.items()}
        out["frames"] = out["frames"].at[:lanes, 0].set(exit_)
        return out

    def read(self, carry: Mapping[str, Any], window: Window, depth: jax.Array, names: Sequence[str]) -> dict[str, Any]:
        """Return the saved values of variables in the lanes' current frames, by name, [width, ...] in storage form.

        `depth` is int32[width].
        """
        values: dict[str, Any] = {}
        for buffer in self.widths:
            in_buffer = [v for v in names if self.columns[v].buffer == buffer]
            if in_buffer:
                # One gather of all columns from the first to the last: a second one would cost more than the gaps.
                low, high = self._hull(in_buffer)
                words = self._gather(carry[buffer], window, depth + 1, low, high)
                for v in in_buffer:
                    column = self.columns[v]
                    values[v] = word_packing.unpack(words[:, column.start - low : column.stop - low], column.type)
        return values

    def back(self, carry: Mapping[str, Any], window: Window, depth: jax.Array) -> jax.Array:
        """Return the numbers of the blocks that the lanes' current bodies return to, uint32[width]."""
        return self._gather(carry["frames"], window, depth, 0, 1)[:, 0]

    def write(
        self,
        carry: Mapping[str, Any],
        window: Window,
        depth: jax.Array,
        saved: Mapping[str, Any],
        back: jax.Array | None,
        mask: jax.Array,
    ) -> dict[str, jax.Array]:
        """Return the buffers after active lanes have saved values in their current frames.

        Args:
            carry: The state.
            window: The lanes.
            depth: int32[width].
            saved: The values by variable, [width, ...] in storage form.
            back: The return addresses [width] to save beside them; None: none.
            mask: bool[width]: the lanes that save.

        Returns:
            The new buffers by state key; only those that are written.
        """
        parts = {buffer: self._parts(buffer, window, saved, back) for buffer in self.widths}
        return {b: self._scatter(carry[b], window, depth + 1, words, mask) for b, words in parts.items() if words}

    def rows(
        self,
        carry: Mapping[str, Any],
        window: Window,
        depth: jax.Array,
        saved: Mapping[str, Any],
        back: jax.Array | None,
        mask: jax.Array,
    ) -> dict[str, tuple[jax.Array, jax.Array]]:
        """Return for each buffer the lanes' rows after `write`, [width, words], and bool[width]: who writes them.

        `put` writes such rows.
        """
        out = {}
        for buffer, width in self.widths.items():
            parts = self._parts(buffer, window, saved, back)
            row = self._gather(carry[buffer], window, depth + 1, 0, width) if parts else self._no_row(buffer, window)
            for (low, high), value in parts.items():
                row = row.at[:, low:high].set(value)
            out[buffer] = row, mask if parts else jnp.zeros_like(mask)
        return out

    def put(
        self,
        carry: Mapping[str, Any],
        window: Window,
        depth: jax.Array,
        rows: Mapping[str, tuple[jax.Array, jax.Array]],
    ) -> dict[str, jax.Array]:
        """Return the buffers after the rows of `rows` are written whole into the lanes' current frames."""
        return {
            buffer: self._scatter(carry[buffer], window, depth + 1, {(0, self.widths[buffer]): row}, mask)
            for buffer, (row, mask) in rows.items()
        }

    def no_rows(self, window: Window) -> dict[str, tuple[jax.Array, jax.Array]]:
        """Return the rows of a visit in which no lane writes any, in the form of `rows`."""
        return {buffer: (self._no_row(buffer, window), jnp.zeros_like(window.here)) for buffer in self.widths}

    def _no_row(self, buffer: str, window: Window) -> jax.Array:
        return jnp.zeros((window.width, self.widths[buffer]), self.dtype(buffer))

    def _parts(
        self, buffer: str, window: Window, saved: Mapping[str, Any], back: jax.Array | None
    ) -> dict[tuple[int, int], jax.Array]:
        columns = {v: column for v in saved if (column := self.columns[v]).buffer == buffer}
        parts = {
            (column.start, column.stop): word_packing.pack(saved[v], window.width, self.dtype(buffer))
            for v, column in columns.items()
        }
        if back is not None and buffer == NAMES[word_packing.SMALL]:
            parts[0, RETURN_COLUMN] = back.astype(word_packing.SMALL)[:, None]
        return parts

    def _hull(self, names: Sequence[str]) -> tuple[int, int]:
        return min(self.columns[v].start for v in names), max(self.columns[v].stop for v in names)

    def _gather(self, rows: jax.Array, window: Window, row: jax.Array, low: int, high: int) -> jax.Array:
        index = row * window.lanes + window.source
        return rows.at[index, low:high].get(mode="clip")

    def _scatter(
        self,
        rows: jax.Array,
        window: Window,
        row: jax.Array,
        parts: Mapping[tuple[int, int], jax.Array],
        mask: jax.Array,
    ) -> jax.Array:
        """Write parts of rows: one scatter for each run of adjacent columns."""
        dropped = rows.shape[0] + jnp.arange(window.width, dtype=jnp.int32)  # different, so that indices are unique
        index = jnp.where(mask, row * window.lanes + window.source, dropped)
        for low, high, value in runs_of(parts):
            rows = rows.at[index, low:high].set(value, mode="drop", unique_indices=True)
        return rows


def runs_of(parts: Parts) -> list[tuple[int, int, jax.Array]]:
    """Return runs of adjacent columns in order, each with its first column, the one behind it, and its words."""
    runs: list[tuple[int, int, list[jax.Array]]] = []
    for (low, high), value in sorted(parts.items(), key=lambda item: item[0]):
        if runs and runs[-1][1] == low:
            start, _, values = runs[-1]
            runs[-1] = (start, high, [*values, value])
        else:
            runs.append((low, high, [value]))
    return [
        (low, high, jnp.concatenate(values, axis=1) if len(values) > 1 else values[0]) for low, high, values in runs
    ]


def grow(rows: jax.Array, lanes: int, depth: int) -> jax.Array:
    """Return a buffer [rows * lanes, width] with more rows at its end: room for `depth` nested calls."""
    more = jnp.zeros(((depth + 2) * lanes - rows.shape[0], rows.shape[1]), rows.dtype)
    return jnp.concatenate([rows, more])


def depth_of(rows: jax.Array, lanes: int) -> int:
    """Return the number of nested calls that a buffer has room for."""
    return rows.shape[0] // lanes - 2


def _buffer(word: np.dtype[Any]) -> str:
    return NAMES.get(word, f"frames:{word.name}")


def plan(program: StackProgram, floats_apart: bool = False) -> Frames | None:
    """Assign columns to a typed program's slots; None if no block calls.

    `floats_apart`: floating numbers are not saved as bits but in buffers of their own, so that they have tangents.
    """
    calls = [edge for block in program.blocks for edge in edges(block.terminator) if isinstance(edge, PushJump)]
    if not calls:
        return None
    together = _together(program, dict.fromkeys([program.entry, *(call.target for call in calls)]))
    columns: dict[str, Column] = {}
    for v in _in_order(program):
        type_ = program.vars[v].type
        assert type_ is not None
        stored = storage_type(type_)
        word = word_packing.word(stored, floats_apart)
        buffer, size = _buffer(word), word_packing.width(stored, word)
        taken = [columns[u] for u in together[v] if u in columns and columns[u].buffer == buffer]
        start = _first_gap(taken, size, RETURN_COLUMN if buffer == "frames" else 0)
        columns[v] = Column(buffer, start, start + size, stored)
    widths = {"frames": RETURN_COLUMN}
    for column in columns.values():
        widths[column.buffer] = max(widths.get(column.buffer, 0), column.stop)
    return Frames(columns, widths)


def _in_order(program: StackProgram) -> list[str]:
    """Return slots in the order of their pushes, small values first: what is pushed together gets adjacent columns."""
    order = {v: k for k, v in enumerate(dict.fromkeys(v for block in program.blocks for v in _slots(block)))}

    def key(v: str) -> tuple[bool, int]:
        type_ = program.vars[v].type
        return type_ is not None and type_.size > 1, order[v]

    return sorted(order, key=key)


def _slots(block: StackBlock) -> list[str]:
    return [*(op.dst for op in pushes(block)), *(op.dst for op in pops(block))]


def _together(program: StackProgram, entries: Sequence[str] | Mapping[str, None]) -> dict[str, set[str]]:
    """Return for every slot the slots that some body uses beside it, which must not share its columns."""
    used = {b.label: set(_slots(b)) for b in program.blocks}
    out: dict[str, set[str]] = {v: set() for names in used.values() for v in names}
    for entry in entries:
        body = set[str]().union(*(used[label] for label in activation(program, entry)))
        for v in body:
            out[v] |= body - {v}
    return out


def _first_gap(taken: Sequence[Column], size: int, start: int) -> int:
    for column in sorted(taken, key=lambda c: c.start):
        if start + size <= column.start:
            break
        start = max(start, column.stop)
    return start
