"""Results of chunks, gathered on the host while the devices run the next chunk."""

from __future__ import annotations

from typing import Any

import jax
import numpy as np

from pcbatch.runtime.vm.raw_result import RawResult

NOBODY = -1  # the owner of a slot without results
FIRST_ROWS = 1024  # room for results where their number is unknown


class ChunkResults:
    """The results of all inputs, on the host; they arrive in any order.

    Attributes:
        leaves: by leaf of the results, [inputs, ...].
        written: bool[inputs], those that have arrived.
    """

    def __init__(self, total: int | None) -> None:
        self.room = FIRST_ROWS if total is None else total
        self.tree: Any = None
        self.leaves: list[np.ndarray] = []
        self.written = np.zeros(self.room, bool)
        self._expected: tuple[RawResult, np.ndarray] | None = None

    def expect(self, rows: RawResult, owners: np.ndarray) -> None:
        """Take note of results that a program will leave: rows by slot, and the input of each, or `NOBODY`."""
        self._expected = rows, owners

    def gather(self) -> None:
        """Copy the expected results to the host. Waits for the program."""
        if self._expected is not None:
            rows, owners = self._expected
            slots = np.flatnonzero(owners != NOBODY)
            self._put(owners.ravel()[slots], slots, rows)
            self._expected = None

    def _put(self, owners: np.ndarray, slots: np.ndarray, rows: RawResult) -> None:
        leaves, self.tree = jax.tree.flatten(rows)
        shape = (int(np.prod(rows.status.shape)),)  # one for each slot of each device
        arrays = [np.asarray(leaf).reshape(shape + leaf.shape[rows.status.ndim :]) for leaf in leaves]
        if not self.leaves:
            self.leaves = [np.zeros((self.room, *x.shape[1:]), x.dtype) for x in arrays]
        self._make_room(int(owners.max(initial=-1)) + 1)
        for leaf, array in zip(self.leaves, arrays, strict=True):
            leaf[owners] = array[slots]
        self.written[owners] = True

    def restore(self, leaves: list[np.ndarray], written: np.ndarray) -> None:
        """Continue with the results of a checkpoint."""
        self.leaves, self.written = [np.array(x) for x in leaves], np.array(written)
        self.room = len(self.written)

    def _make_room(self, needed: int) -> None:
        if needed > self.room:
            more = max(needed, 2 * self.room) - self.room
            self.room += more
            self.leaves = [np.concatenate([x, np.zeros((more, *x.shape[1:]), x.dtype)]) for x in self.leaves]
            self.written = np.concatenate([self.written, np.zeros(more, bool)])

    def all(self, count: int) -> tuple[RawResult, np.ndarray]:
        """Return the first `count` rows, and which of them have been written."""
        self._make_room(count)
        return jax.tree.unflatten(self.tree, [x[:count] for x in self.leaves]), self.written[:count]
