"""Depths of stacks: what a run begins with, by how much stacks grow, and what earlier runs needed.

Each depth is a program to compile. So stacks grow by much at a time, and a machine of the same size passes through the
same depths again, whose programs are there.
"""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from pcbatch.runtime.costs.memory import MachineMemory
from pcbatch.runtime.sharding.lane_sharding import LaneSharding, to_host
from pcbatch.runtime.vm.status import Status

START_DEPTH = 32  # first guess for a recursive program outside `jit`
TRACED_DEPTH = 64  # what a recursive program gets inside `jit`, where stacks cannot grow
GROWTH = (8, 4, 2)  # factors by which stacks grow, each time a program to compile: the first that is cheap enough
DEPTH_LIMIT = 2**20  # nested calls, beyond which stacks do not grow by themselves


@dataclass(slots=True)
class StackDepth:
    """The depths that the runs of one executable have had, and the rules by which stacks grow.

    Attributes:
        static: the greatest number of nested calls, where the call graph bounds it.
        asked: the option `max_depth`.
        memory: the memory that a machine may take.
        needed: the depth that runs have needed so far, with which the next begins.
    """

    static: int | None
    asked: int | None
    memory: MachineMemory
    needed: int = field(init=False)
    _history: dict[Hashable, tuple[int, ...]] = field(default_factory=dict)  # of machines of one kind and size

    def __post_init__(self) -> None:
        self.needed = self._first(START_DEPTH)

    def _first(self, open_ended: int) -> int:
        if self.asked is not None:
            return self.asked
        return open_ended if self.static is None else self.static

    @property
    def grows(self) -> bool:
        """Whether stacks may grow between runs."""
        return self.static is None and self.asked is None

    def traced(self) -> int:
        """The depth of a call inside `jit`, where stacks cannot grow."""
        return self._first(TRACED_DEPTH)

    def initial(self, sharding: LaneSharding, width: int, slots: int) -> int:
        """Return the depth that a machine of `width` lanes and `slots` inputs on each device begins with.

        Raises:
            TooLargeError: there is no memory for it.
        """
        depth = self.needed
        # What runs of fewer lanes have found to be deep enough may be too deep for more of them.
        while self.grows and depth > START_DEPTH and not self.memory.fits(sharding, width, depth, slots):
            depth //= 2
        self.memory.check(sharding, width, depth, slots)
        return depth

    def growth(self, sharding: LaneSharding, depth: int | None = None) -> StackGrowth:
        """The growth of the stacks of one run that begins at this depth; None: at that which runs have needed."""
        return StackGrowth(self, sharding, self.needed if depth is None else depth, self.grows)

    def resumed_growth(self, kind: str, sharding: LaneSharding, width: int, depth: int, grows: bool) -> StackGrowth:
        """The growth of the stacks of a run of this kind and size that is continued at this depth."""
        return StackGrowth(self, sharding, depth, grows, (kind, sharding, width))

    def repeated_growth(self, kind: str, sharding: LaneSharding, width: int, slots: int) -> StackGrowth:
        """The growth of the stacks of one run, whose `known` depths are those of earlier runs of this kind and size."""
        key = kind, sharding, width
        if key not in self._history:
            self._history[key] = (self.initial(sharding, width, slots),)
        depth, *known = self._history[key]
        return StackGrowth(self, sharding, depth, self.grows, key, known)

    def last_growth(self, kind: str, sharding: LaneSharding, width: int, slots: int) -> StackGrowth:
        """The growth of the stacks of one run, from the last depth on that runs of this kind and size went through."""
        growth = self.repeated_growth(kind, sharding, width, slots)
        while growth.repeat():
            pass
        return growth

    def next(self, depth: int, sharding: LaneSharding, width: int) -> int | None:
        """Return the depth after this one; None if there is no memory for it beside the stacks that there are."""
        for factor in GROWTH:
            deeper = factor * depth
            # Each depth is a program to compile, so it is much more, while that is little memory.
            little = factor == GROWTH[-1] or self.memory.is_small(width, deeper)
            if deeper <= DEPTH_LIMIT and little and self.memory.has_room(sharding, width, depth, deeper):
                return deeper
        return None

    def remember(self, depth: int) -> None:
        """Let the next run begin with stacks of this depth, if they are deeper."""
        if self.grows:
            self.needed = max(depth, self.needed)

    def note(self, key: Hashable, depth: int, deeper: int) -> None:
        """Append to the history of machines of this kind and size that stacks of one depth got another."""
        # Another thread may have been faster; a restored run may stand elsewhere in the history.
        if self._history.get(key, (0,))[-1] == depth:
            self._history[key] += (deeper,)

    def notes(self, depth: int) -> tuple[str, ...]:
        """Notes on why stacks of this depth could not grow, if it was for memory."""
        return self.memory.stacks(depth) if self.grows and 2 * depth <= DEPTH_LIMIT else ()


@dataclass(slots=True)
class StackGrowth:
    """The depth of the stacks of one run, which grow while lanes have no room for a call.

    Attributes:
        depth: the depth now.
        grows: whether they may grow; False as well once there was no memory for more.
        known: depths that earlier runs of this kind and size went through next, whose programs are compiled.

    Example:
        >>> growth = stacks.growth(sharding)
        >>> outcome = run(growth.depth)
        >>> while growth.grow_if_full(outcome.status):
        ...     outcome = run(growth.depth)
        >>> growth.remember()
    """

    stacks: StackDepth
    sharding: LaneSharding
    depth: int
    grows: bool
    key: Hashable = None
    known: list[int] = field(default_factory=list)

    def repeat(self) -> bool:
        """Go to the next known depth. False if there is none."""
        if self.known:
            self.depth = self.known.pop(0)
            return True
        return False

    def grow(self, width: int) -> bool:
        """Make stacks deeper, of machines of `width` lanes on each device. False, from then on, if they may not be."""
        deeper = self.stacks.next(self.depth, self.sharding, width) if self.grows else None
        if deeper is None:
            self.grows = False
            return False
        self.stacks.note(self.key, self.depth, deeper)
        self.depth = deeper
        return True

    def grow_if_full(self, status: Any) -> bool:
        """`grow`, if a lane has ended for want of room. Waits for the run whose statuses (int32[lanes]) these are."""
        full = self.grows and bool(np.any(to_host(status) == int(Status.STACK_FULL)))
        return full and self.grow(self.sharding.each)

    def remember(self) -> None:
        """Let the next run begin with this depth."""
        self.stacks.remember(self.depth)
