"""What a run of local static autobatching counts and limits, on the host (NumPy) as in a staged program (JAX).

`trips` int32[]: batched executions of blocks. Where lanes may fail, `stop` int32[lanes]: the number of all blocks while
the lane goes on, then where and why it stopped, as `status.parked`. With `max_steps`: `steps` int32[lanes]. With
statistics: `visits`, `active` and `offered`, per block (see `layout`). Where lanes print: `turn` int32[], which orders
that. Where failures show variables: `show:f.v` [lanes, ...] of the lanes that have failed.
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
    """The rules of a run; `xp` is `numpy` or `jax.numpy`. Counts are kept in a dict and never changed in place."""

    xp: Any
    blocks: int
    max_steps: int | None
    max_depth: int | None  # None: calls cannot fail
    stats: bool
    raises: bool = False  # the program itself may fail
    prints: bool = False
    shown: tuple[tuple[str, ArrayType], ...] = ()  # variables that failures show, and how they are stored

    @property
    def fails(self) -> bool:
        """May lanes fail?"""
        return self.max_steps is not None or self.max_depth is not None or self.raises

    def start(self, lanes: int) -> Values:
        """The counts before anything has run."""
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
        """A block starts for the active lanes."""
        xp = self.xp
        out = {**counts, "trips": counts["trips"] + xp.int32(1)}
        if self.max_steps is not None:
            out["steps"] = counts["steps"] + active.astype(xp.int32)
        if self.stats:
            here = (xp.arange(self.blocks) == number).astype(xp.uint32)
            each = (here, here * xp.sum(active, dtype=xp.uint32), here * xp.uint32(active.shape[0]))
            for key, count in zip(PER_BLOCK, each, strict=True):
                out[key] = wide_counters.plus(counts[key], wide_counters.widened(count, xp), xp)
        return out

    def arrive(self, counts: Values, offset: int, exit: int, pc: Any) -> tuple[Values, Any]:
        """Lanes stand before the blocks `pc` of a function; those without steps left stop there.

        They stop on arrival so that no block is started for nobody.
        """
        if self.max_steps is None:
            return counts, pc
        late = (pc < exit) & (counts["steps"] >= self.max_steps)
        place = parked(pc + offset, self.blocks, Status.STEP_LIMIT)
        stop = self.xp.where(late, place, counts["stop"]).astype(self.xp.int32)
        return {**counts, "stop": stop}, self.xp.where(late, exit, pc).astype(self.xp.int32)

    def admit(self, counts: Values, number: int, active: Any, depth: Any) -> tuple[Values, Any]:
        """Active lanes make a call at this depth; the lanes that may."""
        if self.max_depth is None:
            return counts, active
        full = active & (depth >= self.max_depth)
        place = parked(number, self.blocks, Status.STACK_FULL)
        stop = self.xp.where(full, place, counts["stop"]).astype(self.xp.int32)
        return {**counts, "stop": stop}, active & ~full

    def fail(self, counts: Values, number: int, active: Any, why: Status, shown: Mapping[str, Any]) -> Values:
        """Active lanes fail at the end of a block; `shown` is kept for the message."""
        xp = self.xp
        stop = xp.where(active, parked(number, self.blocks, why), counts["stop"]).astype(xp.int32)
        out = {**counts, "stop": stop}
        for name, value in shown.items():
            old = counts[show(name)]
            out[show(name)] = xp.where(lane_mask(active, old), xp.broadcast_to(xp.asarray(value), old.shape), old)
        return out

    def remaining(self, counts: Values, active: Any) -> Any:
        """The lanes that have not failed meanwhile."""
        return active & (counts["stop"] == self.blocks) if self.fails else active


def show(name: str) -> str:
    """The key of what failures show of a variable."""
    return f"show:{name}"
