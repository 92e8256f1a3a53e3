"""Frames: what a lane saves while it calls, one row of words per open call.

`rows` is [rows * lanes, width] for each kind of word; the row of lane `l` at depth `d` is `d * lanes + l`, so that
stacks grow at the end. Row 0 is nobody's: it holds where the outermost return goes. A body at depth d keeps its
variables in row d + 1, and beside them, in column 0, where its callee returns to: a call writes one row. Variables
whose bodies differ share columns.

Rows are written with indices out of range for lanes that write nothing, which `mode="drop"` ignores.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from pcbatch.ir.def_use import edges, pops, pushes
from pcbatch.ir.liveness import activation
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
    """Where a variable's words stand in a row."""

    buffer: str
    start: int
    stop: int
    type: ArrayType  # storage type


@dataclass(frozen=True, slots=True)
class Frames:
    """The plan of a row. Without calls there are none."""

    columns: Mapping[str, Column]
    widths: Mapping[str, int]  # buffer -> words in a row

    def dtype(self, buffer: str) -> np.dtype[Any]:
        """The word of a buffer."""
        of_floats = buffer.partition(":")[2]
        if of_floats:
            return jnp.dtype(of_floats)
        return word_packing.SMALL if buffer == NAMES[word_packing.SMALL] else word_packing.LARGE

    def bytes(self) -> int:
        """Of one row."""
        return sum(width * self.dtype(name).itemsize for name, width in self.widths.items())

    def empty(self, lanes: int, depth: int, exit_: int) -> dict[str, jax.Array]:
        """Frames for `depth` nested calls; the outermost return goes to `exit_`."""
        made = {name: jnp.zeros(((depth + 2) * lanes, width), self.dtype(name)) for name, width in self.widths.items()}
        made["frames"] = made["frames"].at[:lanes, 0].set(exit_)
        return made

    def read(self, carry: Mapping[str, Any], window: Window, depth: jax.Array, names: Sequence[str]) -> dict[str, Any]:
        """The saved values of some variables in the lanes' current frames."""
        found: dict[str, Any] = {}
        for buffer in self.widths:
            here = [v for v in names if self.columns[v].buffer == buffer]
            if here:
                low, high = self._hull(here)
                part = self._gather(carry[buffer], window, depth + 1, low, high)
                for v in here:
                    column = self.columns[v]
                    found[v] = word_packing.unpack(part[:, column.start - low : column.stop - low], column.type)
        return found

    def back(self, carry: Mapping[str, Any], window: Window, depth: jax.Array) -> jax.Array:
        """Where the lanes' current bodies return to: a block's number."""
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
        """The buffers after the lanes in `mask` saved values, and (with `back`) a return address, in their frames."""
        parts = {buffer: self._parts(buffer, window, saved, back) for buffer in self.widths}
        return {b: self._scatter(carry[b], window, depth + 1, found, mask) for b, found in parts.items() if found}

    def rows(
        self,
        carry: Mapping[str, Any],
        window: Window,
        depth: jax.Array,
        saved: Mapping[str, Any],
        back: jax.Array | None,
        mask: jax.Array,
    ) -> dict[str, tuple[jax.Array, jax.Array]]:
        """As `write`, but the lanes' whole rows and who writes them, for `put`."""
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
        """The buffers with whole rows written."""
        return {
            buffer: self._scatter(carry[buffer], window, depth + 1, {(0, self.widths[buffer]): row}, mask)
            for buffer, (row, mask) in rows.items()
        }

    def no_rows(self, window: Window) -> dict[str, tuple[jax.Array, jax.Array]]:
        """What `rows` gives when nobody writes."""
        return {buffer: (self._no_row(buffer, window), jnp.zeros_like(window.here)) for buffer in self.widths}

    def _no_row(self, buffer: str, window: Window) -> jax.Array:
        return jnp.zeros((window.width, self.widths[buffer]), self.dtype(buffer))

    def _parts(
        self, buffer: str, window: Window, saved: Mapping[str, Any], back: jax.Array | None
    ) -> dict[tuple[int, int], jax.Array]:
        mine = {v: column for v in saved if (column := self.columns[v]).buffer == buffer}
        parts = {
            (column.start, column.stop): word_packing.pack(saved[v], window.width, self.dtype(buffer))
            for v, column in mine.items()
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
        """One scatter for each run of adjacent columns."""
        nowhere = rows.shape[0] + jnp.arange(window.width, dtype=jnp.int32)  # of each its own: indices are unique
        index = jnp.where(mask, row * window.lanes + window.source, nowhere)
        for low, high, value in _runs(parts):
            rows = rows.at[index, low:high].set(value, mode="drop", unique_indices=True)
        return rows


def _runs(parts: Parts) -> list[tuple[int, int, jax.Array]]:
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
    """The same frames with room for `depth` nested calls."""
    more = jnp.zeros(((depth + 2) * lanes - rows.shape[0], rows.shape[1]), rows.dtype)
    return jnp.concatenate([rows, more])


def depth_of(rows: jax.Array, lanes: int) -> int:
    """The nested calls that there is room for."""
    return rows.shape[0] // lanes - 2


def _buffer(word: np.dtype[Any]) -> str:
    return NAMES.get(word, f"frames:{word.name}")


def plan(program: StackProgram, floats_apart: bool = False) -> Frames | None:
    """Columns for a program's slots, or None if nothing calls; `floats_apart`: floating numbers are not kept as bits,
    but in buffers of their own."""
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
    """Slots in the order of their pushes: what is saved together gets adjacent columns, small values first."""
    order = {v: k for k, v in enumerate(dict.fromkeys(v for block in program.blocks for v in _slots(block)))}

    def key(v: str) -> tuple[bool, int]:
        type_ = program.vars[v].type
        return type_ is not None and type_.size > 1, order[v]

    return sorted(order, key=key)


def _slots(block: StackBlock) -> list[str]:
    return [*(op.dst for op in pushes(block)), *(op.dst for op in pops(block))]


def _together(program: StackProgram, entries: Sequence[str] | Mapping[str, None]) -> dict[str, set[str]]:
    """For every slot, the slots that a body may hold beside it."""
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
