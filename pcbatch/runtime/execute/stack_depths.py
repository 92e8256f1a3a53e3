"""How deep stacks are: what a run begins with, by how much they grow, and what earlier runs needed.

Each depth is a program to compile. So stacks grow by much at a time, and a machine of the same size passes through the
same depths again, whose programs are there.
"""

from __future__ import annotations

from collections.abc import Hashable
from typing import Any

import numpy as np

from pcbatch.runtime.costs.memory import Memory
from pcbatch.runtime.sharding.lane_sharding import LaneSharding, to_host
from pcbatch.runtime.vm.status import Status

START_DEPTH = 32  # first guess for a recursive program outside `jit`
TRACED_DEPTH = 64  # what a recursive program gets inside `jit`, where stacks cannot grow
GROWTH = (8, 4, 2)  # factors by which stacks grow, each time a program to compile: the first that is cheap enough
DEPTH_LIMIT = 2**20  # nested calls, beyond which stacks do not grow by themselves


class Deepening:
    """What an executable knows of the depth of its stacks."""

    depth: int  # that calls have needed
    memory: Memory
    _depths: dict[Any, tuple[int, ...]]  # that machines of one kind and size had, one after the other

    @property
    def grows(self) -> bool:
        """May stacks grow between runs?"""
        raise NotImplementedError

    def traced_depth(self) -> int:
        """The depth that a call inside `jit` gets."""
        raise NotImplementedError

    def deeper(self, status: Any, depth: int, spread: LaneSharding) -> int | None:
        """The depth that stacks are to have, if a lane has no room, and there may be more. Waits for the run to end."""
        full = bool(np.any(to_host(status) == int(Status.STACK_FULL)))
        return self.next_depth(depth, spread, spread.each) if self.grows and full else None

    def next_depth(self, depth: int, spread: LaneSharding, width: int) -> int | None:
        """The depth after this one, if there is room for it beside the stacks that there are. Each is a program to
        compile, so it is much more, while that is little memory."""
        for factor in GROWTH:
            new = factor * depth
            little = factor == GROWTH[-1] or self.memory.is_small(width, new)
            if new <= DEPTH_LIMIT and little and self.memory.has_room(spread, width, depth, new):
                return new
        return None

    def growth_notes(self, depth: int) -> tuple[str, ...]:
        """Notes on why stacks of this depth could not grow, if it was for memory."""
        return self.memory.stacks(depth) if self.grows and 2 * depth <= DEPTH_LIMIT else ()

    def remember(self, depth: int) -> None:
        if self.grows:
            self.depth = max(depth, self.depth)

    def depths(self, key: Hashable, spread: LaneSharding, width: int, slots: int) -> tuple[int, ...]:
        """The depths that a machine of this kind and size (`key`) had before, one after the other: passing through them
        again, it needs no other programs. Of a new one, the depth with which it begins."""
        if key not in self._depths:
            self._depths[key] = (self.fitting(spread, width, slots),)
        return self._depths[key]

    def grew(self, key: Hashable, depth: int, deeper: int) -> None:
        """Note that such a machine has got deeper stacks."""
        if self._depths.get(key, (0,))[-1] == depth:
            self._depths[key] += (deeper,)

    def fitting(self, spread: LaneSharding, width: int, slots: int, traced: bool = False) -> int:
        """The depth that a machine of so many lanes begins with; TooLargeError if there is no room for it. What runs of
        fewer lanes have found to be deep enough may be too deep for more of them."""
        depth = self.traced_depth() if traced else self.depth
        while self.grows and not traced and depth > START_DEPTH and not self.memory.fits(spread, width, depth, slots):
            depth //= 2
        self.memory.check(spread, width, depth, slots)
        return depth
