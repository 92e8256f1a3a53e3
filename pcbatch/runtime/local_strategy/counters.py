"""The counts and limits of a run of local static autobatching, on the host (NumPy) or in a staged program (JAX).

`trips` int32[]: batched executions of blocks. Where lanes may fail, `stop` int32[lanes]: the number of all blocks while
the lane is live, then the block at which it stopped and its status, as `status.parked`. With `max_steps`: `steps`
int32[lanes]. With statistics: `visits`, `active` and `offered`, per block (see `vm/layout.py`). Where lanes print:
`turn` int32[], which orders the prints. Where failures show variables: `show:f.v` [lanes, ...] of the lanes that have
failed.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from pcbatch.ir.types import ArrayType
from pcbatch.runtime.vm import wide_counters
from pcbatch.runtime.vm.block_body import Values
from pcbatch.runtime.vm.lane_window import lane_mask
from pcbatch.runtime.vm.layout import PER_BLOCK
from pcbatch.runtime.vm.status import Status, parked


@dataclass(frozen=True, slots=True)
class Tally:
    """The rules by which a run counts. Counts are a dict by name, which no method changes in place."""

    xp: Any  # `numpy` or `jax.numpy`
    blocks: int  # of all functions
    max_steps: int | None
    max_depth: int | None  # None: calls cannot fail
    stats: bool
    raises: bool = False  # the program itself may fail
    prints: bool = False
    shown: tuple[tuple[str, ArrayType], ...] = ()  # variables that failures show, and their storage types

    @property
    def fails(self) -> bool:
        """Whether lanes of the program may fail."""
        return self.max_steps is not None or self.max_depth is not None or self.raises

    def start(self, lanes: int) -> Values:
        """Return the counts before the first block."""
        xp = self.xp
        out: Values = {"trips": xp.zeros((), xp.int32)}
        if self.fails:
            out["stop"] = xp.full((lanes,), self.blocks, xp.int32)
        if self.max_steps is not None:
            out["steps"] = xp.zeros((lanes,), xp.int32)
        if self.stats:
            out |= {key: wide_counters.zeros(self.blocks, xp) for key in PER_BLOCK}
        if self.prints:
            out["turn"] = xp.zeros((), xp.int32)
        return out | {show(name): xp.zeros((lanes, *t.shape), np.dtype(t.dtype)) for name, t in self.shown}

    def block(self, counts: Values, number: int, active: Any) -> Values:
        """Return the counts after block `number` has started for the active lanes, bool[lanes]."""
        xp = self.xp
        out = {**counts, "trips": counts["trips"] + xp.int32(1)}
        if self.max_steps is not None:
            out["steps"] = counts["steps"] + active.astype(xp.int32)
        if self.stats:
            one_hot = (xp.arange(self.blocks) == number).astype(xp.uint32)
            added = (one_hot, one_hot * xp.sum(active, dtype=xp.uint32), one_hot * xp.uint32(active.shape[0]))
            for key, count in zip(PER_BLOCK, added, strict=True):
                out[key] = wide_counters.plus(counts[key], wide_counters.widened(count, xp), xp)
        return out

    def arrive(self, counts: Values, offset: int, exit: int, pc: Any) -> tuple[Values, Any]:
        """Return the counts and program counters of lanes that arrive at blocks; those without steps left stop there.

        They stop on arrival, so that no block starts without active lanes.

        Args:
            counts: The counts.
            offset: The number of the function's first block.
            exit: The program counter of a lane that has returned.
            pc: int32[lanes]: program counters in the function.
        """
        if self.max_steps is None:
            return counts, pc
        late = (pc < exit) & (counts["steps"] >= self.max_steps)
        counts = self._stopped(counts, late, pc + offset, Status.STEP_LIMIT)
        return counts, self.xp.where(late, exit, pc).astype(self.xp.int32)

    def admit(self, counts: Values, number: int, active: Any, depth: Any) -> tuple[Values, Any]:
        """Return the counts and the lanes that may call, bool[lanes], of active lanes that call at this depth."""
        if self.max_depth is None:
            return counts, active
        full = active & (depth >= self.max_depth)
        return self._stopped(counts, full, number, Status.STACK_FULL), active & ~full

    def _stopped(self, counts: Values, lanes: Any, number: Any, why: Status) -> Values:
        stop = self.xp.where(lanes, parked(number, self.blocks, why), counts["stop"])
        return {**counts, "stop": stop.astype(self.xp.int32)}

    def fail(self, counts: Values, number: int, active: Any, why: Status, shown: Mapping[str, Any]) -> Values:
        """Return the counts after active lanes have failed at the end of block `number`; `shown` is for the message."""
        xp = self.xp
        out = self._stopped(counts, active, number, why)
        for name, value in shown.items():
            old = counts[show(name)]
            out[show(name)] = xp.where(lane_mask(active, old), xp.broadcast_to(xp.asarray(value), old.shape), old)
        return out

    def remaining(self, counts: Values, active: Any) -> Any:
        """Return those of the active lanes that have not failed meanwhile, bool[lanes]."""
        return active & (counts["stop"] == self.blocks) if self.fails else active


def show(name: str) -> str:
    """Return the key of the values that failures show of a variable."""
    return f"show:{name}"
