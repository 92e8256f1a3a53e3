"""Results that stay on the device: rows of arrays, which later requests name by their numbers."""

from __future__ import annotations

import threading
import weakref
from collections.abc import Sequence
from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from pcbatch.ask.answers import reader
from pcbatch.lowering.typing.pytree import flatten

FIRST = 64  # rows that an arena begins with


class Arena:
    """The kept results of one structure: a column for each leaf, with a row for each result that is still referred to.

    Rows are written all at once for a batch, and gathered all at once for another; a row whose `Row` is gone is used
    again.
    """

    def __init__(self, like: Any) -> None:
        leaves, self.tree = flatten(like)
        self.columns = [jnp.zeros((FIRST, *leaf.shape[1:]), leaf.dtype) for leaf in leaves]
        self.size, self.free = FIRST, list(range(FIRST))
        self.lock = threading.Lock()

    def stored(self, values: Any, count: int) -> list[Row]:
        """Store the first `count` examples of a batch of results."""
        with self.lock:
            while len(self.free) < count:
                self.free += range(self.size, 2 * self.size)
                self.size *= 2
                self.columns = [jnp.concatenate([column, jnp.zeros_like(column)]) for column in self.columns]
            numbers = self.free[:count]
            del self.free[:count]  # of this very list, to which rows that are gone come back
            leaves = jax.tree.leaves(values)
            size = len(leaves[0]) if leaves else count
            places = np.full(size, self.size, np.int32)  # no place, for the examples that fill the batch up
            places[:count] = numbers
            # Not donated: a batch that is being put together may still read the columns of before.
            self.columns = _written(self.columns, places, leaves)
        rows = [Row(self, number) for number in numbers]
        for row in rows:
            weakref.finalize(row, self.free.append, row.number)
        return rows

    def gathered(self, rows: Sequence[Row], axis: int) -> Any:
        """Return the results in these rows as an argument of a batched call, with the examples along `axis`."""
        places = np.asarray([row.number for row in rows], np.int32)
        with self.lock:
            columns = _read(self.columns, places, axis)
        return jax.tree.unflatten(self.tree, columns)


@jax.jit
def _written(columns: list[jax.Array], places: jax.Array, rows: list[jax.Array]) -> list[jax.Array]:
    return [column.at[places].set(some, mode="drop") for column, some in zip(columns, rows, strict=True)]


@partial(jax.jit, static_argnames="axis")
def _read(columns: list[jax.Array], places: jax.Array, axis: int) -> list[jax.Array]:
    return [jnp.moveaxis(column[places], 0, axis) for column in columns]


class Row:
    """A result that stays on the device, given by `f.ask(..., keep=True)`: an argument of later requests.

    `row.value()` copies it to the host.
    """

    __slots__ = ("__weakref__", "arena", "number")

    def __init__(self, arena: Arena, number: int) -> None:
        self.arena, self.number = arena, number

    def value(self) -> Any:
        """Copy the result to the host, as `f.ask` gives it without `keep`."""
        return reader(self.arena.gathered([self], 0))(0)

    def __repr__(self) -> str:
        return f"<pcbatch row {self.number} on the device>"
