"""Runs that somebody looks after: a program makes some trips, the host looks, and the next makes more.

How many trips that are is decided by time (`TripBudget`): long enough that starting a program costs nothing beside it,
short enough that the host is soon asked.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Hashable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

FOREVER = int(np.iinfo(np.int32).max)
STRETCH = 0.15  # seconds that a run of the program should take
FIRST = 4  # trips of the first run that makes any
FASTER = 16  # times as many trips in the next run, at most


@dataclass(frozen=True, slots=True)
class RunCounts:
    """How far a run is. `finished`: inputs that have results; `waiting`: those that no lane has taken; `live`: lanes
    that run; `full`: does a lane wait for deeper stacks? `trips` are summed over devices, as `busy` is, the lanes that
    lived summed over trips (of `offered`, all lanes): a mean of what was seen before and after each run."""

    total: int | None
    finished: int = 0
    waiting: int = 0
    live: int = 0
    full: bool = False
    trips: int = 0
    busy: float = 0.0
    offered: float = 0.0

    def after(self, trips: int, live: int, lanes: int, **changes: Any) -> RunCounts:
        """After so many more trips (summed over devices) of machines of so many lanes in all."""
        return replace(
            self,
            live=live,
            trips=self.trips + trips,
            busy=self.busy + trips * (self.live + live) / 2,
            offered=self.offered + float(trips) * lanes,
            **changes,
        )


@dataclass(slots=True)
class TripBudget:
    """How many trips the next run of a program may make. The first makes none: it waits for the compiler. `met`: what
    tells the programs apart that have been compiled."""

    trips: int = 0
    each: float | None = None  # seconds
    met: set[Hashable] = field(default_factory=set)

    def took(self, trips: int, seconds: float) -> None:
        """So many trips took so long."""
        if not trips:
            self.trips = max(self.trips, FIRST)
            return
        self.each = seconds / trips
        wanted = int(STRETCH / self.each) if self.each else FOREVER
        self.trips = max(1, min(wanted, FASTER * max(self.trips, FIRST), FOREVER))


Report = Callable[[RunCounts], object]


@dataclass(slots=True)
class HostLoop:
    """What the host does between two runs of a program, and when it stops.

    `trips`: how many there may be, on each device; `until`: a time of `time.monotonic`, which moves on while programs
    are compiled; `interrupted`: does somebody want it to stop? `save` is called at least every so many seconds
    (`every`) with something that gives the state."""

    pace: TripBudget
    trips: int | None = None
    until: float | None = None
    report: Report | None = None
    save: Callable[[Any], None] | None = None
    every: float = 0.0
    interrupted: Callable[[], bool] = lambda: False
    why: str | None = field(default=None, init=False)  # it has stopped
    _began: float = field(default=0.0, init=False)
    _asked: int = field(default=0, init=False)
    _waits: float | None = field(default=None, init=False)
    _saved: float = field(default_factory=time.monotonic, init=False)

    @property
    def stopped(self) -> bool:
        """Shall nothing more be run?"""
        return self.why is not None

    def may_continue(self) -> bool:
        """May there be a run at all?"""
        if self.interrupted():
            self.why = "interrupted"
        elif self.until is not None and time.monotonic() >= self.until:
            self.why = "time"
        elif self.trips is not None and self.trips <= 0:
            self.why = "trips"
        return self.why is None

    @contextmanager
    def untimed(self) -> Iterator[None]:
        """What is done in it (compiling, for the most part) takes nothing of the time."""
        began, until, self.until = time.monotonic(), self.until, None
        yield
        self.until = None if until is None else until + time.monotonic() - began

    def limit(self, program: Hashable) -> np.int32:
        """The trips that the next run of this program may make."""
        self._began = time.monotonic()
        most = self.pace.trips if program in self.pace.met else 0
        self.pace.met.add(program)
        if self.until is not None and self.pace.each and most:
            most = min(most, max(1, int((self.until - self._began) / self.pace.each)))
        if self.trips is not None:
            most = min(most, self.trips)
        if not most:  # it is compiled, which takes nothing of the time
            self._waits, self.until = self.until, None
        self._asked = most
        return np.int32(most)

    def ran(self, trips: int, standing: RunCounts, snapshot: Any) -> bool:
        """A run has made so many trips (on the device that made most); is there another? `snapshot` is for `save`."""
        now = time.monotonic()
        if trips == self._asked:  # else it ended before that
            self.pace.took(trips, now - self._began)
        if not self._asked and self._waits is not None:
            self.until, self._waits = self._waits + now - self._began, None
        if self.trips is not None:
            self.trips -= trips
        if self.report is not None:
            self.report(standing)
        if self.save is not None and now - self._saved >= self.every:
            self.save(snapshot)
            self._saved = time.monotonic()
        return self.may_continue()
