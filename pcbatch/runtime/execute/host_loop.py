"""Monitored runs: a program makes some trips, the host looks, and the next program makes more.

How many trips that are is decided by time (`TripBudget`): long enough that starting a program costs nothing beside it,
short enough that the host soon looks again.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Hashable, Iterator
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

FOREVER = int(np.iinfo(np.int32).max)
STRETCH = 0.15  # seconds that a run of the program should take
FIRST = 4  # trips of the first run that makes any
FASTER = 16  # times as many trips in the next run, at most


@dataclass(frozen=True, slots=True)
class RunCounts:
    """The numbers that tell how far a run is.

    Attributes:
        total: inputs; None if that is not known yet.
        finished: inputs that have results.
        waiting: inputs that no lane has taken.
        live: lanes that run.
        full: whether a lane waits for deeper stacks.
        trips: trips, summed over devices.
        busy: live lanes, summed over trips: a mean of those before and after each program.
        offered: all lanes, summed over trips.
    """

    total: int | None
    finished: int = 0
    waiting: int = 0
    live: int = 0
    full: bool = False
    trips: int = 0
    busy: float = 0.0
    offered: float = 0.0

    def after(self, trips: int, live: int, lanes: int, **changes: Any) -> RunCounts:
        """The counts after more trips (summed over devices) of machines of `lanes` lanes in all."""
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
    """The trips that the next run of a program may make. The first makes none: it waits for the compiler.

    Attributes:
        trips: the budget.
        each: the measured seconds per trip; None before the first.
        met: the keys of the programs that have been compiled.
    """

    trips: int = 0
    each: float | None = None
    met: set[Hashable] = field(default_factory=set)

    def took(self, trips: int, seconds: float) -> None:
        """Set the next budget by the time that this number of trips took."""
        if not trips:
            self.trips = max(self.trips, FIRST)
            return
        self.each = seconds / trips
        wanted = int(STRETCH / self.each) if self.each else FOREVER
        self.trips = max(1, min(wanted, FASTER * max(self.trips, FIRST), FOREVER))


@dataclass(slots=True)
class ProgramRun:
    """One run of a program in a monitored run.

    Attributes:
        budget: the trips that it may make, which fit in 32 bits.
        made: the trips that it has made, on the device that made most; to be set by whoever runs it.
    """

    budget: int
    made: int = 0


Report = Callable[[RunCounts], object]


@dataclass(slots=True)
class HostLoop:
    """The host's part in a monitored run: the budget of each program, and what happens between two of them.

    Attributes:
        trips: trips that are left, on each device; None: no limit.
        until: the time of `time.monotonic` at which the run stops. It moves on while programs are compiled.
        report: is called with the counts between two programs.
        save: is called with a function that gives the state, when `every` seconds have passed since the last time.
        every: seconds between two checkpoints.
        interrupted: whether the user wants the run to stop.
        monitored: whether the host looks in between; if not, each program may run to the end.
        pace: the measured time per trip, and the programs that are compiled.
        why: why the run has stopped: "interrupted", "time" or "trips"; None while it has not.

    Example:
        >>> while loop.may_continue():
        ...     with loop.program(key) as run:
        ...         state = advance(state, run.budget)
        ...         run.made = int(state.trips)
        ...     loop.between(counts(state), lambda: state)
    """

    trips: int | None = None
    until: float | None = None
    report: Report | None = None
    save: Callable[[Any], None] | None = None
    every: float = 0.0
    interrupted: Callable[[], bool] = lambda: False
    monitored: bool = True
    pace: TripBudget = field(default_factory=TripBudget, init=False)
    why: str | None = field(default=None, init=False)
    _saved: float = field(default_factory=time.monotonic, init=False)

    @property
    def stopped(self) -> bool:
        """Whether nothing more is to be run."""
        return self.why is not None

    def may_continue(self) -> bool:
        """Return whether another program may run; if not, `why` tells the reason from then on."""
        if self.interrupted():
            self.why = "interrupted"
        elif self.until is not None and time.monotonic() >= self.until:
            self.why = "time"
        elif self.trips is not None and self.trips <= 0:
            self.why = "trips"
        return self.why is None

    @contextmanager
    def untimed(self) -> Iterator[None]:
        """Leave what is done inside (compiling, for the most part) out of the time that the run may take."""
        began, until, self.until = time.monotonic(), self.until, None
        yield
        self.until = None if until is None else until + time.monotonic() - began

    @contextmanager
    def program(self, key: Hashable) -> Iterator[ProgramRun]:
        """Run one program inside: budget its trips before, and account for them and their time after.

        The first run of a program has no trips in its budget, and its time is not counted: it is compiled.

        Args:
            key: what tells the program apart from others that are compiled on their own.
        """
        began = time.monotonic()
        run = ProgramRun(self._trips_of(key, began))
        with nullcontext() if run.budget else self.untimed():
            yield run
        if run.made == run.budget:  # else it ended before that, and its time tells less
            self.pace.took(run.made, time.monotonic() - began)
        if self.trips is not None:
            self.trips -= run.made

    def _trips_of(self, key: Hashable, began: float) -> int:
        if not self.monitored:
            return FOREVER
        trips = self.pace.trips if key in self.pace.met else 0
        self.pace.met.add(key)
        if self.until is not None and self.pace.each and trips:
            trips = min(trips, max(1, int((self.until - began) / self.pace.each)))
        return trips if self.trips is None else min(trips, self.trips)

    def between(self, counts: RunCounts, snapshot: Any) -> bool:
        """Report and save between two programs, and return whether another may run.

        Args:
            counts: how far the run is.
            snapshot: what `save` gets, a function that gives the state.
        """
        if self.report is not None:
            self.report(counts)
        if self.save is not None and time.monotonic() - self._saved >= self.every:
            self.save(snapshot)
            self._saved = time.monotonic()
        return self.may_continue()
