"""The backward machine of tasks: the log of visits, read backwards. There are no lists, and nothing waits.

Blocks of which no other needs cotangents, such as the leaves of a tree, are not in the log: all their rows are undone
at the end, in wide slices. So are the products that give the cotangents of shared values.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import jax
import jax.numpy as jnp
from jax import lax

from pcbatch.lowering.typing.jax_types import storage_type, zeros
from pcbatch.runtime.tasks.pool import guarded, written
from pcbatch.runtime.tasks.reading import TaskMachine
from pcbatch.runtime.tasks.sizes import Sizes
from pcbatch.runtime.tasks.task_plan import FROM
from pcbatch.runtime.tasks.trip import Trips
from pcbatch.runtime.vm.block_body import Values
from pcbatch.runtime.vm.word_packing import is_float
from pcbatch.transforms.tasks.recorder import offsets
from pcbatch.transforms.tasks.task_tape import FULL, JOINS, LOG, SERIALS, VISITS, WIDTH, TaskBlockTape, TaskTape
from pcbatch.transforms.tasks.undo import (
    TOTAL,
    TapeRows,
    Undoing,
    deferred_vjp,
    of_constant,
    of_deferred,
    of_place,
    of_record,
    vjp_of_rows,
)

I32 = jnp.int32
NEXT = "next"  # int32[]: the visit that is undone next
MANY, FEW = 512, 64  # rows that are undone at once at the end, and of the last ones


def argument_cotangents(
    tape: TaskTape, fixed: Values, lanes: int, parts: Mapping[str, Any], cotangents: Sequence[Any]
) -> tuple[Values, Values]:
    """Undo the visits of a recorded run by tasks, the last one first.

    Args:
        tape: The plan of its tape.
        fixed: Constants of the examples and shared values, in storage form.
        lanes: The examples that were recorded.
        parts: The tape.
        cotangents: Of the results, in order, [examples, ...]; None: zero.

    Returns:
        The cotangents of parameters of each example, and of what all examples share, by variable.
    """
    u = _undoing(tape, fixed, lanes, parts)
    c = _start(u, cotangents)
    c = _undo_log(u, c)
    for block in tape.blocks:
        if block.late:
            c = _in_slices(u, block, c, vjp_of_rows)
        elif block.deferred:
            c = _in_slices(u, block, c, deferred_vjp)
    each = {v: c[of_constant(v)] for block in tape.blocks for v in block.moved}
    entry = tape.linked(tape.plan.entry.label)
    if entry is not None:
        row = u.rows_of[entry.block.label][:lanes]
        for v in entry.fed:
            ct = c[of_record(entry.block.label, v)].at[u.pad + row].get(mode="clip")
            each[v] = jnp.where((row >= 0).reshape(-1, *(1,) * (ct.ndim - 1)), ct, jnp.zeros((), ct.dtype))
    return each, {v: c[TOTAL + v] for v in tape.deferred}


def _undoing(tape: TaskTape, fixed: Values, lanes: int, parts: Mapping[str, Any]) -> Undoing:
    pad = parts[WIDTH].shape[0]
    room = {b.block.number: b.rows(parts) - 2 * pad for b in tape.blocks}
    joins = parts[SERIALS].shape[0] - pad
    number = jnp.arange(joins, dtype=I32)
    known = jnp.where(number < parts[JOINS], parts[SERIALS][:joins], lanes + joins + number)
    places = jnp.full(lanes + joins, -1, I32).at[:lanes].set(jnp.arange(lanes, dtype=I32))
    places = places.at[known].set(lanes + pad + number, mode="drop", unique_indices=True)
    rows_of, found = {}, {}
    for label in tape.links:
        block = tape.linked(label)
        assert block is not None
        found[label], length = offsets(tape, label, lanes, room, pad)
        rows = room[block.block.number]
        row = jnp.arange(rows, dtype=I32)
        column = block.record_layout.columns[FROM]
        where = parts[block.key(column.buffer)][pad : pad + rows, column.start]
        where = jnp.where((row < parts[block.count]) & (where >= 0), where, length + row)
        rows_of[label] = jnp.full(length, -1, I32).at[where].set(row, mode="drop", unique_indices=True)
    return Undoing(tape, parts, fixed, lanes, pad, places, rows_of, found)


def _start(u: Undoing, cotangents: Sequence[Any]) -> Values:
    """The cotangents before anything is undone: those of results at their places."""
    c: Values = {NEXT: jnp.where(u.parts[FULL], -1, u.parts[VISITS] - 1)}  # what is left of a full tape means nothing
    plan, rows = u.tape.plan, u.frames
    used = {home.key for b in u.tape.blocks if b.joins for v, home in plan.sites.homes[b.block.label].items()}
    for results in plan.sites.results:
        for key, type_ in zip(results.keys, results.types, strict=True):
            if is_float(type_) and (key in used or results is plan.entry.results):
                c[of_place(key)] = zeros(type_, (rows * results.slots,))
    for key, type_ in plan.sites.cells.items():
        if is_float(type_) and key in used:
            c[of_place(key)] = zeros(type_, (rows,))
    for key, ct in zip(plan.entry.results.keys, cotangents, strict=True):
        if ct is not None and of_place(key) in c:
            array = c[of_place(key)]
            c[of_place(key)] = array.at[: u.lanes].set(ct.astype(array.dtype))
    for block in u.tape.blocks:
        length = block.rows(u.parts)
        if block.block.label in u.tape.links:
            types = {s.name: s.type for s in block.body.sources}
            c |= {of_record(block.block.label, v): zeros(storage_type(types[v]), (length,)) for v in block.fed}
        c |= {of_constant(v): jnp.zeros_like(u.fixed[v]) for v in block.moved}
        if not block.late:
            deferred = {**block.body.outputs, **block.body.edge}
            cts = block.reads.deferred_cts
            c |= {of_deferred(block, n): zeros(storage_type(deferred[n]), (length,)) for n in cts}
    return c | {TOTAL + v: jnp.zeros_like(u.fixed[v]) for v in u.tape.deferred}


def _undo_log(u: Undoing, c: Values) -> Values:
    """Undo the visits of the log, the last one first."""
    trips = Trips(TaskMachine(u.tape.plan, Sizes(u.lanes, u.pad, 0, 0, 0), {}))
    blocks = [block for block in reversed(u.tape.blocks) if not block.late]
    if not blocks:
        return c

    def entry(s: Values) -> jax.Array:
        found: jax.Array = lax.dynamic_index_in_dim(u.parts[LOG], jnp.maximum(s[NEXT], 0), keepdims=False)
        return found

    def trip(s: Values) -> Values:
        for block in blocks:
            widths = _fewer(trips.widths(block.block))
            keys = written(lambda s, b=block, w=widths[-1]: undo(s, b, w), s)  # type: ignore[misc]
            for width, less in zip(widths, (*widths[1:], 0), strict=True):

                def fits(s: Values, block: TaskBlockTape = block, width: int = width, less: int = less) -> jax.Array:
                    visit = entry(s)
                    right: jax.Array = (s[NEXT] >= 0) & (visit[0] == block.block.number)
                    return right & (visit[2] > less) & (visit[2] <= width)

                def body(s: Values, block: TaskBlockTape = block, width: int = width) -> Values:
                    return undo(s, block, width)

                s = guarded(fits(s), body, s, fits, keys)
        return s

    def undo(s: Values, block: TaskBlockTape, width: int) -> Values:
        visit = entry(s)
        mask = jnp.arange(width, dtype=I32) >= width - visit[2]
        rows = TapeRows(u.pad + visit[1] - width, mask, visit[3])
        return vjp_of_rows(u, block, s, rows) | {NEXT: s[NEXT] - 1}

    ended: Values = lax.while_loop(lambda s: s[NEXT] >= 0, trip, c)
    return ended


def _fewer(widths: Sequence[int]) -> Sequence[int]:
    """Return every second of many widths: each is one more pullback to compile."""
    return widths if len(widths) < 3 else widths[::2]


def _in_slices(
    u: Undoing, block: TaskBlockTape, c: Values, step: Callable[[Undoing, TaskBlockTape, Values, TapeRows], Values]
) -> Values:
    """Do something with all rows of a block, many at once."""
    n, none = jnp.where(u.parts[FULL], 0, u.parts[block.count]), jnp.zeros((), I32)
    first, widths = none, (MANY, min(FEW, u.pad))
    for width, least in zip(widths, (MANY, 1), strict=True):

        def go(s: tuple[jax.Array, Values], least: int = least) -> jax.Array:
            more: jax.Array = s[0] + least <= n
            return more

        def some(s: tuple[jax.Array, Values], width: int = width) -> tuple[jax.Array, Values]:
            rows = TapeRows(u.pad + s[0], jnp.arange(width, dtype=I32) < n - s[0], none)
            return s[0] + width, step(u, block, s[1], rows)

        first, c = lax.while_loop(go, some, (first, c))
    return c
