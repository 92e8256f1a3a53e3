"""The loop of a run on the host: trips, and more room where there is too little, until all examples have ended.

One machine and the machines of several devices run so. The arrays of a run are kept for the next one, which takes them
over.
"""

from __future__ import annotations

from collections.abc import Hashable, MutableMapping
from dataclasses import dataclass, field, replace
from typing import Any, NamedTuple, Protocol

import numpy as np

from pcbatch.runtime.tasks import pool
from pcbatch.runtime.tasks.sizes import Sizes
from pcbatch.runtime.vm.block_body import Values
from pcbatch.runtime.vm.raw_result import KEEPING, RawResult, debug_checks


class Outcome(NamedTuple):
    """The results of a run, and bool[examples]: those that have none, because a task has failed or had no room."""

    raw: RawResult
    unfinished: np.ndarray


class Stretch(NamedTuple):
    """The end of the trips that machines of one size make, on the host or on its way there.

    Attributes:
        raw: the results.
        state: the arrays, [devices, ...] where there are several devices, as below.
        stuck: bool[]: whether records are left that need more room.
        unfinished: bool[examples]: those that have no result.
    """

    raw: RawResult
    state: Values
    stuck: Any
    unfinished: Any


class Machines(Protocol):
    """The machine of a run, or those of several devices, with the arguments of the run."""

    def begins_with(self) -> Sizes:
        """Return the sizes that a run begins with."""

    def empty(self, now: Sizes) -> Values:
        """Return the arrays of machines that have not run."""

    def advance(self, now: Sizes, s: Values, begins: bool) -> Stretch:
        """Begin a run, or go on with one, until all examples have returned or nothing has room to run."""

    def grown(self, now: Sizes, larger: Sizes, s: Values) -> Values:
        """Return larger arrays, in which a run goes on."""

    def may_have(self, larger: Sizes) -> bool:
        """Whether arrays may become so large."""


@dataclass(eq=False, slots=True)
class Kept:
    """The arrays of runs that have ended, by their sizes and what else tells machines apart."""

    arrays: MutableMapping[Hashable, Values] = field(default_factory=dict)

    def run(self, machines: Machines, key: Hashable = None) -> tuple[Outcome, Sizes | None]:
        """Run all examples to their end, as far as they have one. Outside traces.

        Args:
            machines: The machines.
            key: Tells them apart from others of the same sizes.

        Returns:
            The results, and the sizes at the end; None if they were not large enough, and larger ones are too large.
        """
        now, begins, before = machines.begins_with(), True, 0
        s = self.arrays.pop((key, now), None)
        s = machines.empty(now) if s is None else s
        while True:
            raw, s, stuck, unfinished = machines.advance(now, s, begins)
            raw = replace(raw, trips=raw.trips + before) if not begins else raw
            unfinished = np.asarray(unfinished)
            if not unfinished.any() or not np.any(stuck):  # usually one array comes to the host
                break
            larger = now.larger(lacks_frames(s, stuck))
            if not machines.may_have(larger):
                return Outcome(raw, unfinished), None  # its frames are not free: the arrays are not kept
            before = raw.trips
            s, now, begins = machines.grown(now, larger, s), larger, False
        if not (debug_checks() or KEEPING.get()):
            self.arrays[key, now] = s
        return Outcome(raw, unfinished), now


def lacks_frames(s: Values, stuck: Any) -> bool:
    """Whether a machine that is stuck has no frame left; else it has no room on lists."""
    return pool.FREE_COUNT in s and bool(np.any((np.asarray(s[pool.FREE_COUNT]) == 0) & np.asarray(stuck)))
