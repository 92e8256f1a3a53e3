"""The door for those who record what visits compute, as gradients do: a machine of lists calls a recorder's methods.

The rows of a block are numbered in the order of its visits. A frame gets a new serial number each time it is opened,
because its own is used again; examples, which results can go to as well, have the first ones.
"""

from __future__ import annotations

from typing import NamedTuple, Protocol

import jax

from pcbatch.runtime.tasks.plan import BlockPlan, TaskPlan
from pcbatch.runtime.vm.block_body import Effects, Values
from pcbatch.runtime.vm.lane_window import Window


class Seen(NamedTuple):
    """The values that a visit has read and computed: [width, ...] each."""

    window: Window
    registers: Values  # constants of the examples that the block reads, [examples, ...]
    record: Values  # what the list or the frame holds
    frame: jax.Array | None
    dest: jax.Array | None
    root: jax.Array | None
    done: Effects


class Recorder(Protocol):
    """The methods that a machine of lists calls in each visit of a block, in this order."""

    @property
    def plan(self) -> TaskPlan:
        """The plan of the program, with the columns that are recorded besides."""

    def rows(self, block: BlockPlan, s: Values, seen: Seen, shared: Values) -> Values:
        """Return what is recorded of a visit, by state key, before anything of the state is written."""

    def opened(self, s: Values, frames: jax.Array, k: jax.Array, ok: jax.Array) -> None:
        """Note that the first k of these frames are opened."""

    def origin(self, s: Values, block: BlockPlan, target: str, rank: int, width: int) -> jax.Array:
        """Return the column `FROM` of what a visit pushes, by the rank of the push."""

    def append(self, s: Values, block: BlockPlan, rows: Values, k: jax.Array) -> None:
        """Append the rows of a visit, of which the first k are records."""
