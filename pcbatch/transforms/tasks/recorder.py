"""Visits are recorded: the rows of a visit are dense, so each buffer gets them as one slice.

Buffers have the width of a visit to spare at both ends: slices that are read and written back to front begin before the
first row, those of visits end behind the last one. Counts do not stop where the room ends: a tape that was too short
tells how long it must be.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import jax
import jax.numpy as jnp
from jax import lax

from pcbatch.ir.forks import Fork, leaves
from pcbatch.ir.tasks import Finish, Spawn, Start, Sync, TaskBlock, spawns
from pcbatch.runtime.tasks import pool
from pcbatch.runtime.tasks.reading import Seen
from pcbatch.runtime.tasks.sites import opens
from pcbatch.runtime.tasks.task_plan import FROM, ListBlock, TaskPlan
from pcbatch.runtime.vm.block_body import Values
from pcbatch.transforms.tape.recorder import MOST_COUNTED, recorded_values
from pcbatch.transforms.tasks.task_tape import (
    EXAMPLES,
    FRAMES,
    FULL,
    JOINS,
    LOG,
    ROOTS,
    SERIALS,
    TODO,
    VISITS,
    WIDTH,
    Link,
    TaskBlockTape,
    TaskTape,
)

I32 = jnp.int32
SERIAL_OF = "frame:serial"  # int32[examples + frames]: the serial number of each frame that is open


@dataclass(frozen=True, slots=True)
class TapeRoom:
    """The room of a tape: rows of each block, of joins, and visits that are undone one by one."""

    rows: tuple[int, ...]
    joins: int
    visits: int


def offsets(tape: TaskTape, label: str, lanes: int, rows: Mapping[int, int], pad: int) -> tuple[dict[Link, int], int]:
    """Return where the rows of each kind of push look for the rows of a block, and how many places there are.

    Args:
        tape: The tape.
        label: The block.
        lanes: Examples.
        rows: The room of each block, by its number.
        pad: Places in front of each region.
    """
    found, end = {}, 0
    for link in tape.links[label]:
        if link.source < 0:
            found[link], end = end, end + lanes
        else:
            found[link], end = end + pad, end + pad + rows[link.source]
    return found, end


@dataclass(frozen=True, eq=False)
class TaskRecorder:
    """The recorder of a tape with so much room, of visits of so many records at most."""

    tape: TaskTape
    room: TapeRoom
    lanes: int
    pad: int

    @property
    def plan(self) -> TaskPlan:
        """The plan of the program, with the columns that are recorded besides."""
        return self.tape.plan

    @cached_property
    def _rows(self) -> dict[int, int]:
        return {b.block.number: n for b, n in zip(self.tape.blocks, self.room.rows, strict=True)}

    @cached_property
    def _offsets(self) -> dict[str, dict[Link, int]]:
        return {label: offsets(self.tape, label, self.lanes, self._rows, self.pad)[0] for label in self.tape.links}

    def empty(self) -> Values:
        """Return the tape before the first visit."""
        s: Values = {FRAMES: jnp.full((), self.lanes, I32)}
        for tape, rows in zip(self.tape.blocks, self.room.rows, strict=True):
            s |= tape.empty(self.pad + rows + self.pad)
        s[LOG], s[VISITS] = jnp.zeros((self.room.visits + 1, 4), I32), jnp.zeros((), I32)
        s[SERIALS], s[JOINS] = jnp.zeros(self.room.joins + self.pad, I32), jnp.zeros((), I32)
        return s

    def parts(self, s: Values, todo: jax.Array) -> dict[str, Any]:
        """Return the parts of the tape after a run that has left the examples `todo`, bool[examples]."""
        counts = [s[b.count] > n for b, n in zip(self.tape.blocks, self.room.rows, strict=True)]
        full = jnp.any(jnp.array([*counts, s[JOINS] > self.room.joins, s[VISITS] > self.room.visits]))
        # Frames are opened more often than their joins run where examples are not finished.
        full = full | (s[FRAMES] - self.lanes > self.room.joins)
        extra = {TODO: todo, ROOTS: jnp.arange(self.lanes, dtype=I32), FULL: full}
        extra |= {WIDTH: jnp.zeros(self.pad, bool), EXAMPLES: jnp.zeros(self.lanes, bool)}
        return {key: extra[key] if key in extra else s[key] for key in self.tape.keys}

    # What visits call

    def rows(self, block: ListBlock, s: Values, seen: Seen, shared: Values) -> Values:
        """Return the rows of a visit, by the key of their buffer."""
        tape = self.tape.of(block)
        if tape is None:
            return {}
        values = recorded_values(
            tape.body,
            tape.recorded,
            shared,
            seen.window.width,
            lambda v: seen.window.read(seen.registers[v]),
            seen.record.__getitem__,
            seen.done.loaded,
        )
        rows = tape.record_layout.packed(values | self._numbers(tape, s, seen))
        if tape.joins and tape.fed:
            assert seen.frame is not None
            rows[SERIALS] = s[SERIAL_OF].at[seen.frame].get(mode="clip")
        return rows

    def opened(self, s: Values, frames: jax.Array, k: jax.Array, ok: jax.Array) -> None:
        """Give the next serial numbers to the frames of a visit."""
        s[SERIAL_OF] = pool.put(s[SERIAL_OF], frames, ok, s[FRAMES] + jnp.arange(frames.shape[0], dtype=I32))
        s[FRAMES] = jnp.minimum(s[FRAMES], MOST_COUNTED) + k

    def origin(self, s: Values, block: ListBlock, target: str, rank: int, width: int) -> jax.Array:
        """Return the places where the rows of this visit look for what it pushes."""
        tape, at = self.tape.of(block), self._offsets[target].get(Link(block.number, rank))
        if tape is None or at is None:
            return jnp.full(width, -1, I32)
        places: jax.Array = at + s[tape.count] + jnp.arange(width, dtype=I32)
        return places

    def append(self, s: Values, block: ListBlock, rows: Values, k: jax.Array) -> None:
        """Append the rows of a visit, and the visit to the log."""
        tape = self.tape.of(block)
        if tape is None:
            return
        begin = s[tape.count]
        s |= tape.appended(s, rows, self.pad)
        s[tape.count] = jnp.minimum(begin, MOST_COUNTED) + k
        if SERIALS in rows:
            s[SERIALS] = lax.dynamic_update_slice_in_dim(s[SERIALS], rows[SERIALS], s[JOINS], 0)
            s[JOINS] = jnp.minimum(s[JOINS], MOST_COUNTED) + k
        if not tape.late:
            entry = jnp.stack([jnp.full((), block.number, I32), begin + k, k, s[JOINS]])
            s[LOG] = lax.dynamic_update_slice_in_dim(s[LOG], entry[None], s[VISITS], 0)
            s[VISITS] = jnp.minimum(s[VISITS], MOST_COUNTED) + 1

    def _numbers(self, tape: TaskBlockTape, s: Values, seen: Seen) -> dict[str, Any]:
        """Return the columns of a row that hold numbers of frames, examples and rows."""
        block, width = tape.block.block, seen.window.width
        found: dict[str, Any] = {}
        for name in tape.numbers:
            if name == FROM:
                found[name] = seen.record[FROM]
            elif name == "root":
                found[name] = seen.window.source
            elif name == "to":
                assert seen.dest is not None
                slots = I32(tape.block.results.slots)
                found[name] = s[SERIAL_OF].at[seen.dest // slots].get(mode="clip") * slots + seen.dest % slots
            elif name == "frame":
                found[name] = self._open_frame(tape, s, seen, width)
            elif name == "leaf":
                found[name] = _taken(block.terminator, seen.done.saved, width)
            else:
                op = spawns(block)[int(name.removeprefix("way:"))]
                found[name] = _taken(op.way, seen.done.saved, width)
        return found

    def _open_frame(self, tape: TaskBlockTape, s: Values, seen: Seen, width: int) -> jax.Array:
        if opens(tape.block.block):
            new: jax.Array = s[FRAMES] + jnp.arange(width, dtype=I32)
            return new
        assert seen.frame is not None
        found: jax.Array = s[SERIAL_OF].at[seen.frame].get(mode="clip")
        return found


def _taken(tree: Any, values: Values, width: int, first: int = 0) -> jax.Array:
    """The number of the leaf of a tree of forks that each place takes, from left to right."""
    if not isinstance(tree, Fork):
        return jnp.full(width, first, I32)
    on_true = _taken(tree.on_true, values, width, first)
    behind = first + len(leaves(tree.on_true))
    return jnp.where(values[tree.cond], on_true, _taken(tree.on_false, values, width, behind))


def traced_room(tape: TaskTape, lanes: int, visits: int) -> TapeRoom:
    """Return the room of a tape that cannot grow: so many rows of each block for each example, on average.

    Of blocks that run before or after all trips there is one row for each example. Where each `sync` waits for two
    tasks or more, there are at most half as many of them as tasks that end.
    """
    plan, most = tape.plan, lanes * visits
    once = {block.label for block in (*plan.first, *plan.last)}
    trips = [block.block for block in plan.blocks if block.label not in once]
    ending = [block.label for block in trips if any(isinstance(leaf, Finish) for leaf in leaves(block.terminator))]
    waiting = [block for block in trips if any(isinstance(leaf, Sync) for leaf in leaves(block.terminator))]
    counted = {block.block.label for block in tape.blocks}.issuperset(ending)
    forks = counted and all(_always_started(block) >= 2 for block in waiting)
    syncs = min(most, len(ending) * most // 2) if forks else most

    def room(block: TaskBlockTape) -> int:
        if block.block.label in once:
            return lanes
        return syncs if block.joins else most

    rows = tuple(map(room, tape.blocks))
    return TapeRoom(rows, sum(n for block, n in zip(tape.blocks, rows, strict=True) if block.joins), sum(rows) + 64)


def _always_started(block: TaskBlock) -> int:
    """The tasks that each record of a block starts and waits for, whatever its values are."""
    return sum(isinstance(op, Spawn) and all(isinstance(way, Start) for way in leaves(op.way)) for op in block.ops)
