"""The race: candidates measured within a budget, and the best put together."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from statistics import median
from typing import Any, Protocol

LEAST = 0.02  # seconds of a measurement; shorter runs are repeated, as the clock and the machine are not that steady
TIE = 0.05  # a candidate that gains less than this share leaves the simpler one as it is
HOPELESS = 2.0  # a candidate that takes so many times as long as the defaults is measured once
COMBINATIONS = 3  # of options that are tried, at most
ROUNDS = 4  # in which candidates are measured in turn, the first of them before combinations
SKIPPED = "skipped: compiling would exceed the budget"
ENDED = "not measured: the budget ended"
INTERRUPTED = "skipped: interrupted"


@dataclass(frozen=True, slots=True)
class Candidate:
    """A change of the plan to measure, under a name for the table.

    Attributes:
        name: in the table.
        fields: those of the plan that it changes.
        lanes: of `f.map`; None: a call.
    """

    name: str
    fields: Mapping[str, Any]
    lanes: int | None = None

    @property
    def changes(self) -> frozenset[str]:
        """The names of what differs from the defaults."""
        return frozenset(self.fields) | ({"lanes"} if self.lanes is not None else set())


class Impossible(Exception):
    """A candidate cannot run; the text says why."""


class Bench(Protocol):
    """Runs candidates on the inputs; a test gives one with a clock of its own.

    Attributes:
        compiled: how many programs the last run has compiled, one after the other.
    """

    compiled: int

    def now(self) -> float:
        """Return the time in seconds."""

    def run(self, candidate: Candidate) -> Any:
        """Run a candidate to its end, compiling if it is the first time, and return its result.

        Raises:
            Impossible: It cannot run. (Never the first candidate.)
        """


@dataclass(slots=True)
class Row:
    """The measurements of one candidate, and why there are no more of them."""

    candidate: Candidate
    first: float | None = None  # seconds of the first run, most of which is compiling
    times: list[float] = field(default_factory=list)  # seconds of a later run, by measurement
    note: str = ""
    compiled: int = 1  # programs in the first run: more than one where lists had to grow

    @property
    def seconds(self) -> float:
        """The median of the runs after the first; infinity without any, or for what was refused."""
        return median(self.times) if self.times else math.inf

    @property
    def compared(self) -> bool:
        """Whether it was measured often enough to win."""
        return not self.note and len(self.times) > 1


def together(one: Candidate, other: Candidate) -> Candidate | None:
    """Return the candidate that changes what both change; None if they have an option in common."""
    if one.changes & other.changes:
        return None
    fields = {**one.fields, **other.fields}
    lanes = one.lanes if other.lanes is None else other.lanes
    return Candidate(f"{one.name} + {other.name}", fields, lanes)


@dataclass(slots=True)
class Race:
    """Measures candidates, of which the first is the defaults, until the budget of seconds is spent.

    No run begins that is expected to end after the budget: a first run is expected to take as long as one program took
    at most of its kind so far (a call, or `f.map`), and to leave time for measurements; a later one as long as the
    longest of the candidate. The first run of the defaults is made in any case, as there is nothing to compare with
    before, and the first candidate is compared if the budget has not ended by then: a table of one line is of no use.
    Ctrl-C after that ends the race with what is measured.

    Attributes:
        bench: runs candidates.
        budget: seconds.
        differs: says how a candidate's result differs from that of the defaults; None if it does not.
        combine: makes one candidate of two; None if they do not go together.
        told: is called with the numbers of candidates that are through, and of all.
        rows: what was measured, in the order of the candidates; combinations come last.
        interrupted: whether Ctrl-C has ended it.
    """

    bench: Bench
    budget: float
    differs: Callable[[Any, Any], str | None]
    combine: Callable[[Candidate, Candidate], Candidate | None] = together
    told: Callable[[int, int], None] = lambda done, of: None
    rows: list[Row] = field(default_factory=list)
    interrupted: bool = False
    _end: float = 0.0
    _reference: Any = None

    def run(self, candidates: Sequence[Candidate]) -> list[Row]:
        """Measure candidates, and combinations of the best of them."""
        self._end = self.bench.now() + self.budget
        self.rows = [Row(candidate) for candidate in candidates]
        self._default(self.rows[0])
        try:
            for number, row in enumerate(self.rows[1:], 1):
                self._try(row)
                self.told(number + 1, len(self.rows))
            if self._round(self._promising()):
                self._combinations()
                self._finals()
            for row in self.rows[1:]:
                row.note = row.note or ("" if row.times else ENDED)
        except KeyboardInterrupt:
            self.interrupted = True
            for row in self.rows:
                row.note = row.note or (INTERRUPTED if row.first is None else "")
        self._reference = None  # a result may be large
        return self.rows

    def _default(self, row: Row) -> None:
        began = self.bench.now()
        self._reference = self.bench.run(row.candidate)
        row.first, row.compiled = self.bench.now() - began, max(1, self.bench.compiled)
        self.told(1, len(self.rows))
        for _ in range(2):
            self._measure(row)

    def _try(self, row: Row) -> None:
        """Make the first run of a candidate, compare its result, and measure it."""
        default, began = self.rows[0], self.bench.now()
        left = sum(other.seconds for other in self._promising() if other.times)  # for a round in which they take turns
        expected = self.expected(row) + 2 * (default.seconds if default.times else 0.0) + left
        only = len(default.times) > 1 and all(other.first is None for other in self.rows[1:])
        if began + (0 if only else expected) > self._end:
            row.note = SKIPPED
            return
        try:
            result = self.bench.run(row.candidate)
        except Impossible as reason:
            row.note = f"impossible: {reason}"
            return
        row.first, row.compiled = self.bench.now() - began, max(1, self.bench.compiled)
        if (difference := self.differs(self._reference, result)) is not None:
            row.note = f"refused: {difference}"
        elif self._measure(row, only) and row.seconds <= HOPELESS * default.seconds:
            self._measure(row, only)  # one measurement alone may have been disturbed

    def _promising(self) -> list[Row]:
        return [row for row in self.rows if not row.note and row.seconds <= HOPELESS * self.rows[0].seconds]

    def expected(self, row: Row) -> float:
        """Return the seconds that the first run of a candidate is expected to take."""
        kind = row.candidate.lanes is None
        took = [(other.first / other.compiled, other.candidate.lanes is None) for other in self.rows if other.first]
        alike = [seconds for seconds, call in took if call == kind]
        return max(alike or [seconds for seconds, _ in took], default=0.0)

    def _measure(self, row: Row, late: bool = False) -> bool:
        """Measure a candidate once, and say whether there was time for it; `late`: behind the budget, too."""
        began = self.bench.now()
        expected = max(row.times) if row.times else 0.0
        if began + expected > self._end and not late:
            return False
        times = list[float]()
        while not times or sum(times) < LEAST and began + sum(times) < self._end:
            start = self.bench.now()
            self.bench.run(row.candidate)
            times.append(self.bench.now() - start)
        row.times.append(median(times))  # a mean would count what else the machine does in some of them
        return True

    def _round(self, rows: Sequence[Row]) -> bool:
        """Measure rows in turn, and say whether there was time for all."""
        return all(self._measure(row) for row in rows)

    def _combinations(self) -> None:
        """Try the fastest candidate together with the fastest that change something else, and keep what gains."""
        default, ranked = self.rows[0], _ranked(self.rows)
        if not ranked or ranked[0].seconds >= default.seconds:
            return
        best, *others = ranked
        tried = 0
        for other in others:
            # What is as fast as the defaults alone may still gain together with another option.
            if tried == COMBINATIONS or other.seconds > (1 + TIE) * default.seconds:
                return
            pair = self.combine(best.candidate, other.candidate)
            if pair is None:
                continue
            row, tried = Row(pair), tried + 1
            self._try(row)
            if row.note == SKIPPED:
                return
            self.rows.append(row)
            self.told(len(self.rows), len(self.rows))
            if row.times and self._round([best, row]) and row.seconds < best.seconds:
                best = row

    def _finals(self) -> None:
        """Measure the best in turn with the defaults, fewer in each round."""
        alive = _ranked(self.rows)
        for _ in range(ROUNDS - 1):
            alive = alive[: max(1, math.ceil(len(alive) / 2))]
            if not self._round([self.rows[0], *alive]):
                return
            alive = sorted(alive, key=lambda row: row.seconds)


def _ranked(rows: Sequence[Row]) -> list[Row]:
    """The rows but the first that may win, the fastest first; ties in the order that was given."""
    return sorted((row for row in rows[1:] if row.compared), key=lambda row: row.seconds)


def winner(rows: Sequence[Row]) -> Row:
    """Return the fastest row, or a simpler one (with fewer changes of the defaults, the first row) in a tie."""
    best = rows[0]
    for changes in sorted({len(row.candidate.changes) for row in rows[1:]}):
        alike = (row for row in _ranked(rows) if len(row.candidate.changes) == changes and _gains(row, best))
        best = next(alike, best)
    return best


def _gains(row: Row, over: Row) -> bool:
    """Whether a row is faster by more than a tie, in the median and at best: a busy machine disturbs few of both."""
    if not over.times:
        return True
    return row.seconds < (1 - TIE) * over.seconds and min(row.times) < (1 - TIE) * min(over.times)
