"""Searches for the first row of columns for which a condition holds.

Lanes together ask all rows; a lane alone goes on until it has found one, `RUN` rows of numbers at a time.
"""

from __future__ import annotations

from collections.abc import Callable

import jax
import jax.numpy as jnp

from pcbatch.data.by_width import by_width
from pcbatch.data.checks import PrimitiveCheck, collecting, record
from pcbatch.data.columns import room, row
from pcbatch.data.values import Column, Columns, Index, Value

RUN = 8
Failures = list[tuple[PrimitiveCheck, Column]]


def first_row(
    holds: Callable[[Value], Value], columns: Columns, stop: Index, start: Index = 0, run: int = RUN
) -> Value:
    """Return the first place from `start` on, before `stop`, whose row a condition holds for, int32[]; `stop` if there
    is none. A lane alone asks `run` rows at a time, of numbers."""
    size = room(columns, 0) or 0

    def where(columns: Columns, places: Column, start: Index, stop: Index) -> tuple[Value, Failures]:
        here, failures = of_rows(holds, columns)
        return here & (places >= start) & (places < stop), failures

    def together(columns: Columns, start: Index, stop: Index) -> Value:
        places = jnp.arange(size, dtype=jnp.int32)
        here, failures = where(columns, places, start, stop)
        found = jnp.where(jnp.any(here), jnp.argmax(here).astype(jnp.int32), stop)
        fail_in(failures, (places >= start) & (places <= found) & (places < stop))
        return found

    def alone(columns: Columns, start: Index, stop: Index) -> Value:
        def step(c: tuple[Value, Value]) -> tuple[Value, Value]:
            places, rows = run_at(columns, c[0], size, run)
            found = jnp.where(where(rows, places, c[0], stop)[0], places, stop)
            return c[0] + places.size, jnp.min(found).astype(jnp.int32)

        start, stop = jnp.asarray(start, jnp.int32), jnp.asarray(stop, jnp.int32)
        return jax.lax.while_loop(lambda c: (c[0] < stop) & (c[1] == stop), step, (start, stop))[1]

    return by_width(together, alone)(columns, start, stop) if size else stop


def any_row(holds: Callable[[Value], Value], columns: Columns, stop: Index) -> Value:
    """Return whether a condition holds for a row before `stop`, bool[]: cheaper than `first_row`, which looks for the
    place."""
    size = room(columns, 0) or 0

    def together(columns: Columns, stop: Index) -> Value:
        here, failures = of_rows(holds, columns)
        places = jnp.arange(size, dtype=jnp.int32)
        found = here & (places < stop)
        first = jnp.where(jnp.any(found), jnp.argmax(found).astype(jnp.int32), stop)
        fail_in(failures, (places <= first) & (places < stop))
        return jnp.any(found)

    def alone(columns: Columns, stop: Index) -> Value:
        def step(c: tuple[Value, Value]) -> tuple[Value, Value]:
            places, rows = run_at(columns, c[0], size)
            return c[0] + places.size, jnp.any(of_rows(holds, rows)[0] & (places < stop))

        return jax.lax.while_loop(lambda c: (c[0] < stop) & ~c[1], step, (jnp.int32(0), jnp.bool_(False)))[1]

    return by_width(together, alone)(columns, jnp.asarray(stop, jnp.int32)) if size else jnp.bool_(False)


def of_rows(holds: Callable[[Value], Value], columns: Columns) -> tuple[Column, Failures]:
    """Return for which rows a condition holds, and the checks that it makes with the rows for which they fail."""
    made: list[PrimitiveCheck] = []

    def ask(row: Value) -> tuple[Value, list[Value]]:
        with collecting() as checks:
            holding = jnp.asarray(holds(row), bool)
        made[:] = checks
        return holding, [check.failed for check in checks]

    holding, failed = jax.vmap(ask)(columns)
    return holding, list(zip(made, failed, strict=True))


def fail_in(failures: Failures, rows: Column) -> None:
    """Make the checks of some rows."""
    for check, failed in failures:
        record(~jnp.any(failed & rows), check.exception, [part for part in check.message if isinstance(part, str)])


def end_of(holds: Callable[[Value], Value], numbers: Column, n: Index) -> Value:
    """Return the place behind the last of the first `n` numbers for which a condition holds, int32[]; 0 if there is
    none."""

    def together(numbers: Column, n: Index) -> Value:
        places = jnp.arange(numbers.size, dtype=jnp.int32)
        return jnp.max(jnp.where(holds(numbers) & (places < n), places + 1, 0))

    def alone(numbers: Column, n: Index) -> Value:
        return jax.lax.while_loop(lambda k: (k > 0) & ~holds(row(numbers, jnp.maximum(k - 1, 0))), lambda k: k - 1, n)

    return by_width(together, alone)(numbers, jnp.asarray(n, jnp.int32))


def length_of_run(columns: Columns, size: int, run: int = RUN) -> int:
    """Return the number of rows that are asked at a time, of columns with `size` rows: of numbers alone several."""
    return run if size >= run and all(leaf.ndim == 1 for leaf in jax.tree.leaves(columns)) else 1


def run_at(columns: Columns, start: Index, size: int, run: int = RUN) -> tuple[Value, Value]:
    """Return some rows with their places, those from `start` on among them, of columns with `size` rows.

    Near the end rows before `start` are among them.
    """
    few = length_of_run(columns, size, run)
    first = jnp.minimum(start, size - few)
    rows = jax.tree.map(lambda leaf: jax.lax.dynamic_slice_in_dim(leaf, first, few, 0), columns)
    return first + jnp.arange(few, dtype=jnp.int32), rows
