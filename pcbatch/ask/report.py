"""The report of a server: how many requests, in which batches, and how long they waited."""

from __future__ import annotations

import threading
import time
from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np

KEPT = 16_384  # waiting times that percentiles are computed of, the latest ones


@dataclass(frozen=True, slots=True)
class Report:
    """The counts of a server so far.

    Attributes:
        requests: those that were answered.
        batches: the calls that answered them, but for those that took lanes of a machine which stayed open.
        mean: the requests of a batch, in the mean.
        padding: the share of the examples of these calls that nobody asked for.
        p50, p99: seconds from a request to its answer: of half of the latest requests, and of 99 in 100, at most this.
        busy: the share of the time since the first request in which a call ran; the rest was the host's.
        programs: calls of a new kind or size, which had to be compiled.
        turns: the runs of machines whose lanes requests take as they come, between two looks of the host.
        lanes: the lanes that ran in such a turn, in the mean.
    """

    requests: int
    batches: int
    padding: float
    p50: float
    p99: float
    busy: float
    programs: int
    mean: float = 0.0
    turns: int = 0
    lanes: float = 0.0

    def __str__(self) -> str:
        turns = f" and {self.turns:,} turns of {self.lanes:.1f} lanes" if self.turns else ""
        return (
            f"{self.requests:,} requests in {self.batches:,} batches of {self.mean:.1f}{turns}, "
            f"{self.padding:.0%} padding; answered in {1e3 * self.p50:.1f} ms (p99 {1e3 * self.p99:.1f} ms); "
            f"{self.busy:.0%} of the time in calls; "
            f"{self.programs} programs compiled"
        )


@dataclass(slots=True)
class Counts:
    """The counts of a server while it runs."""

    requests: int = 0
    batches: int = 0
    examples: int = 0
    batched: int = 0  # of the requests
    turns: int = 0
    lanes: float = 0.0  # that ran, summed over turns
    running: float = 0.0  # seconds
    since: float = field(default_factory=time.monotonic)
    waits: deque[float] = field(default_factory=lambda: deque(maxlen=KEPT))
    programs: set[object] = field(default_factory=set)
    lock: threading.Lock = field(default_factory=threading.Lock)

    def add(self, waits: Sequence[float], size: int, seconds: float, program: object) -> None:
        """Count a batch: what its requests have waited, its examples, its seconds, and what tells its program."""
        with self.lock:
            self.requests += len(waits)
            self.batched += len(waits)
            self.batches += 1
            self.examples += size
            self.running += seconds
            self.waits.extend(waits)
            self.programs.add(program)

    def add_turn(self, waits: Sequence[float], lanes: float, seconds: float, program: object) -> None:
        """Count a turn: what requests that ended in it have waited, the lanes that ran, and as in `add`."""
        with self.lock:
            self.requests += len(waits)
            self.turns += 1
            self.lanes += lanes
            self.running += seconds
            self.waits.extend(waits)
            self.programs.add(program)

    def report(self) -> Report:
        """Return the counts so far."""
        with self.lock:
            waits = np.asarray(list(self.waits) or [0.0])
        p50, p99 = (float(each) for each in np.percentile(waits, (50, 99)))
        padding = 1 - self.batched / self.examples if self.examples else 0.0
        mean = self.batched / self.batches if self.batches else 0.0
        lanes = self.lanes / self.turns if self.turns else 0.0
        busy = self.running / max(time.monotonic() - self.since, 1e-9)
        programs = len(self.programs)
        return Report(self.requests, self.batches, padding, p50, p99, busy, programs, mean, self.turns, lanes)
