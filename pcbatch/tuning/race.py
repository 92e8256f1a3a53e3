"""The race: candidates measured in turn within a budget, of which the slower half is dropped after each round."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from statistics import median
from typing import Any, Protocol

LEAST = 0.02  # seconds of a measurement; shorter runs are repeated, as the clock and the machine are not that steady
TIE = 0.05  # a candidate that gains less than this share leaves the defaults as they are


@dataclass(frozen=True, slots=True)
class Candidate:
    """Options to measure, under a name for the table."""

    name: str
    options: Mapping[str, Any]
    lanes: int | None = None  # of `f.map`; None: a call


class Impossible(Exception):
    """A candidate cannot run; the text says why."""


class Bench(Protocol):
    """Runs candidates on the inputs; a test gives one with a clock of its own."""

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

    @property
    def seconds(self) -> float:
        """The median of the runs after the first; infinity without any, or for what was refused."""
        return median(self.times) if self.times else math.inf


def race(
    candidates: Sequence[Candidate],
    bench: Bench,
    budget: float,
    differs: Callable[[Any, Any], str | None],
    told: Callable[[int, int], None] = lambda done, of: None,
    rounds: int = 5,
) -> list[Row]:
    """Measure candidates, of which the first is the defaults, until the budget of seconds is spent.

    No run begins that is expected to end after the budget: a first run is expected to take as long as the longest
    first run so far, and a later one as long as the longest of the candidate. The first run of the defaults is made in
    any case, as there is nothing to compare with before.
    """
    end = bench.now() + budget
    rows = [Row(candidate) for candidate in candidates]
    _first_runs(rows, bench, end, differs, told)
    alive = [row for row in rows if not row.note]
    for number in range(rounds):
        runs = 1 if number else 2  # one run alone may have been disturbed
        if not all(_measure(alive, bench, end) for _ in range(runs)):
            break
        ranked = sorted(alive[1:], key=lambda row: row.seconds)  # stable: ties in the order that was given
        kept = ranked[: max(1, math.ceil(len(ranked) / 2))]
        alive = [row for row in alive if row is alive[0] or row in kept]
    return rows


def _first_runs(
    rows: list[Row],
    bench: Bench,
    end: float,
    differs: Callable[[Any, Any], str | None],
    told: Callable[[int, int], None],
) -> None:
    reference: Any = None
    longest = 0.0
    for number, row in enumerate(rows):
        began = bench.now()
        if number and began + longest > end:
            row.note = "skipped: compiling would exceed the budget"
            told(number + 1, len(rows))
            continue
        try:
            result = bench.run(row.candidate)
        except Impossible as reason:
            row.note = f"impossible: {reason}"
            told(number + 1, len(rows))
            continue
        row.first = bench.now() - began
        longest = max(longest, row.first)
        if not number:
            reference = result
        elif (difference := differs(reference, result)) is not None:
            row.note = f"refused: {difference}"
        told(number + 1, len(rows))


def _measure(alive: list[Row], bench: Bench, end: float) -> bool:
    """Measure each once, in order; whether there was time for all."""
    for row in alive:
        began = bench.now()
        expected = max(row.times) if row.times else 0.0
        if began + expected > end:
            return False
        bench.run(row.candidate)
        runs, took = 1, bench.now() - began
        while took < LEAST and began + took < end:
            bench.run(row.candidate)
            runs, took = runs + 1, bench.now() - began
        row.times.append(took / runs)
    return True


def winner(rows: Sequence[Row]) -> Row:
    """Return the fastest row, or the defaults (the first) if it gains less than a tie or was run only once."""
    default, *others = rows
    best = min((row for row in others if not row.note and len(row.times) > 1), key=lambda r: r.seconds, default=default)
    return best if best.seconds < (1 - TIE) * default.seconds else default
