"""Moves of rows within columns: what insertions, deletions and slices of lists do.

    closed    [a, b, c, d, -]  ->  [a, d, -, -, -]        two rows from place 1 on are gone
    opened    [a, b, c, d, -]  ->  [a, ?, b, c, d]        room for one at place 1

Lanes together take all rows anew; a lane alone moves those that change their places. What lies behind the rows in use
may be anything.
"""

from __future__ import annotations

from collections.abc import Callable

import jax
import jax.numpy as jnp
import numpy as np

from pcbatch.data.by_width import by_width
from pcbatch.data.columns import chosen, padded, room, row, taken, with_row
from pcbatch.data.values import Column, Columns, Flag, Index, Value

RUN = 8  # rows that are moved at a time


def closed(columns: Columns, n: Index, at: Index, removed: Index) -> Columns:
    """Return columns of `n` rows without the `removed` rows from a place on, which are there."""

    def together(columns: Columns, n: Index, at: Index, removed: Index) -> Value:
        k = _places(columns)
        return taken(columns, jnp.where(k < at, k, k + removed))

    def alone(columns: Columns, n: Index, at: Index, removed: Index) -> Value:
        return _moved(columns, at, at + removed, jnp.where(removed > 0, n - removed - at, 0))

    return _by_width(together, alone)(columns, n, at, removed)


def one_if(holds: Flag) -> Value:
    """Return the number of rows that go where one does, if a condition holds."""
    return int(holds) if isinstance(holds, bool) else jnp.where(holds, 1, 0)


def opened(columns: Columns, n: Index, at: Index) -> Columns:
    """Return columns of `n` rows with room for one at a place."""

    def together(columns: Columns, n: Index, at: Index) -> Value:
        k = _places(columns)
        return taken(columns, jnp.where(k > at, k - 1, k))

    def alone(columns: Columns, n: Index, at: Index) -> Value:
        return _moved(columns, at + 1, at, n - at, backwards=True)

    return _by_width(together, alone)(columns, n, at)


def replaced(columns: Columns, n: Index, at: Index, removed: Index, other: Columns, m: Index) -> Columns:
    """Return columns of `n` rows with `m` rows of other columns in place of `removed` rows from a place on."""

    def together(columns: Columns, n: Index, at: Index, removed: Index, other: Columns, m: Index) -> Value:
        k = _places(columns)
        rest = taken(columns, jnp.where(k < at, k, k - m + removed))
        return chosen(jnp.logical_and(k >= at, k < at + m), taken(other, k - at), rest)

    def alone(columns: Columns, n: Index, at: Index, removed: Index, other: Columns, m: Index) -> Value:
        rest = n - at - removed
        columns = _moved(columns, at + m, at + removed, jnp.where(m < removed, rest, 0))
        columns = _moved(columns, at + m, at + removed, jnp.where(m > removed, rest, 0), backwards=True)
        return _moved(columns, at, 0, m, other)

    if not room(other, 0):
        return closed(columns, n, at, removed)
    return _by_width(together, alone)(columns, n, at, removed, other, m)


def part(columns: Columns, start: Index, count: Index, width: int | None = None) -> Columns:
    """Return columns of the `count` rows from a place on, with room for `width`, or as many as there were."""

    def together(columns: Columns, start: Index, count: Index) -> Value:
        return taken(columns, start + _places(columns)[:width])

    def alone(columns: Columns, start: Index, count: Index) -> Value:
        first = jax.tree.map(lambda leaf: leaf[:width], columns)
        return _moved(first, 0, start, count, columns, over=True)

    return _by_width(together, alone)(columns, start, count)


def concatenated(a: Columns, n: Index, b: Columns, m: Index, size: int) -> Value:
    """Return columns of `size` rows with `n` rows of `a`, and behind them `m` of `b`."""

    def together(a: Columns, n: Index, b: Columns, m: Index) -> Value:
        k = jnp.arange(size, dtype=np.int32)
        return chosen(k < n, taken(a, k), taken(b, k - n))

    def alone(a: Columns, n: Index, b: Columns, m: Index) -> Value:
        first = jax.tree.map(lambda leaf: leaf[:size], padded(a, 0, size))
        return _moved(first, n, 0, m, b, over=True)

    return by_width(together, alone)(a, n, b, m)


def windows(columns: Columns, starts: Column, count: Index, size: int) -> Columns:
    """Return, for each of `count` starts, the `size` rows from it on, or anything behind the last one: columns [starts,
    size]."""

    def together(columns: Columns, starts: Column, count: Index) -> Value:
        places = starts[:, None] + jnp.arange(size, dtype=np.int32)[None]
        return taken(columns, places)

    def alone(columns: Columns, starts: Column, count: Index) -> Value:
        longer = padded(columns, 0, (room(columns, 0) or 0) + size)
        empty = jax.tree.map(lambda leaf: jnp.zeros((starts.shape[0], size, *leaf.shape[1:]), leaf.dtype), columns)

        def step(k: Index, out: Value) -> Value:
            return with_row(out, k, _rows(longer, row(starts, k), size))

        return jax.lax.fori_loop(0, count, step, empty)

    return by_width(together, alone)(columns, starts, count)


def flattened(
    rows_of: Callable[[], Value],
    numbers: Column,
    first: Value,
    sizes: Column,
    count: Index,
    between: Index,
    gap: Index,
    size: int,
) -> Value:
    """Return an array [size] of `sizes[k]` numbers of each of `count` rows, with `gap` numbers between two of them.

    Args:
        rows_of: gives the rows, [n, numbers].
        numbers, first: an array that has the numbers of each row side by side, from `first[k]` on, int32[n].
        sizes: int32[n].
        count: int32[], at most n.
        between, gap: an array [m] of numbers, and how many of them stand between two rows.
        size: the length of the result, which is enough.
    """

    def together(numbers: Column, first: Value, sizes: Column, count: Index, between: Index, gap: Index) -> Value:
        rows = rows_of()
        n = jnp.arange(rows.shape[0], dtype=np.int32)
        gaps = jnp.where(n < count - 1, gap, 0)
        starts = (jnp.cumsum(sizes + gaps) - sizes - gaps)[:, None]
        out = jnp.zeros((size,), rows.dtype)
        spread = jnp.broadcast_to(between[None], (rows.shape[0], between.shape[0]))
        for values, counts, at in ((rows, sizes, starts), (spread, gaps, starts + sizes[:, None])):
            offsets = jnp.arange(values.shape[1], dtype=np.int32)[None]
            out = out.at[jnp.where(offsets < counts[:, None], at + offsets, size)].set(values, mode="drop")
        return out

    def alone(numbers: Column, first: Value, sizes: Column, count: Index, between: Index, gap: Index) -> Value:
        def step(k: Index, c: tuple[Value, Value]) -> tuple[Value, Value]:
            out, at = c
            long, pause = row(sizes, k), jnp.where(k < count - 1, gap, 0)
            out = _moved(out, at, row(first, k), long, numbers, over=True)
            return _moved(out, at + long, 0, pause, between), at + long + pause

        return jax.lax.fori_loop(0, count, step, (jnp.zeros((size,), numbers.dtype), jnp.int32(0)))[0]

    return by_width(together, alone)(numbers, jnp.asarray(first), sizes, count, between, gap)


def _by_width(together: Callable[..., Value], alone: Callable[..., Value]) -> Value:
    """The function `by_width` gives, where there are rows."""

    def call(columns: Columns, *args: Value) -> Value:
        return by_width(together, alone)(columns, *args) if room(columns, 0) else together(columns, *args)

    return call


def _places(columns: Columns) -> Value:
    return jnp.arange(room(columns, 0) or 0, dtype=np.int32)


def _moved(
    columns: Columns,
    to: Value,
    start: Index,
    count: Index,
    source: Value = None,
    backwards: bool = False,
    over: bool = False,
) -> Value:
    """Return columns in which `count` rows from place `start` on, of `source` or these columns, stand from `to` on.

    Runs of rows are moved, then single ones; the last one first if it is `backwards`. A run may go beyond the last row
    if what is `over` these rows is not in use.
    """
    sizes = [room(each, 0) or 0 for each in (columns, columns if source is None else source)]

    def steps(columns: Columns, done: Value, size: int) -> tuple[Value, Value]:
        def offset(done: Value) -> Value:
            return count - done - size if backwards else done

        def step(c: tuple[Value, Value, Value]) -> tuple[Value, Value, Value]:
            # The next rows are read after the store of these: so XLA moves them in place.
            columns, done, moved = c
            columns = _with_rows(columns, to + offset(done), moved)
            return columns, done + size, _rows(columns if source is None else source, start + offset(done + size), size)

        def more(c: tuple[Value, Value, Value]) -> Value:
            if not over or size == 1:
                return c[1] + size <= count
            last = jnp.maximum(to - sizes[0], start - sizes[1]) + c[1] + size
            return (c[1] < count) & (last <= 0)

        first = columns, done, _rows(columns if source is None else source, start + offset(done), size)
        return jax.lax.while_loop(more, step, first)[:2]

    done = jnp.int32(0)
    if min(sizes) > RUN:
        columns, done = steps(columns, done, RUN)
    return steps(columns, done, 1)[0]


def _rows(columns: Columns, start: Index, size: int) -> Value:
    return jax.tree.map(lambda leaf: jax.lax.dynamic_slice_in_dim(leaf, start, size, 0), columns)


def _with_rows(columns: Columns, start: Index, rows: Value) -> Columns:
    return jax.tree.map(lambda leaf, new: jax.lax.dynamic_update_slice_in_dim(leaf, new, start, 0), columns, rows)
