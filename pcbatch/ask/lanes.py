"""Lanes that stay open: where a function loops or recurses, a request takes a free lane of the running machine.

Its answer is delivered when its lane has ended, not when those of others have.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from pcbatch.ask.request import Answer, Kind, Request, stacked
from pcbatch.compiler.growth import lanes_full, rooms_after
from pcbatch.errors import TooLargeError
from pcbatch.runs.open_run import OpenRun, suits, waits
from pcbatch.runtime.vm.raw_result import RawResult
from pcbatch.runtime.vm.status import Status

FEWEST, MOST = 8, 512  # lanes
ALONE = 0.15  # seconds of a turn in which nobody can ask
FULL = 0.02  # in which no lane is free
OPEN = 0.004  # in which others may ask, and find a free lane
FEW = 8  # turns after which there are fewer lanes, if half of them would do
COMPILING = 2.0  # seconds that lanes were idle for nothing, at which a program for fewer of them is worth compiling


@dataclass(slots=True, eq=False)
class Occupant:
    """A request in a lane, and the time of `time.monotonic` since which it runs."""

    request: Request
    since: float


@dataclass(slots=True, eq=False)
class Lanes:
    """The lanes of the requests of one kind.

    Attributes:
        kind: the kind.
        width: the number of lanes for a number of requests.
        timeout: seconds after which a request that still runs fails; None: no limit.
        kept: lets results stay on the device.
        run: the machine; None before the first turn.
        busy: whether a turn is under way.
        passed: how many batches of other kinds went before the next turn.
        few: turns in which half of the lanes would have done.
        idled: seconds of them that were for nothing.
    """

    kind: Kind
    width: Callable[[int], int]
    timeout: float | None
    kept: Callable[[Any, int], Sequence[Any]]
    run: OpenRun | None = None
    busy: bool = False
    passed: int = 0
    few: int = 0
    idled: float = 0.0

    @property
    def live(self) -> int:
        """The number of requests in lanes."""
        return 0 if self.run is None else len(self.run.live)

    @property
    def idle(self) -> int:
        """The number of requests that it can take, after it has got more lanes if it may."""
        return self.width(MOST) - self.live

    @property
    def requests(self) -> list[Request]:
        """The requests in lanes."""
        return [] if self.run is None else [self.run.owners[lane].request for lane in self.run.live]

    def close(self) -> None:
        """Let later machines begin with stacks as deep as these."""
        if self.run is not None:
            self.run.close()

    def opened(self, requests: Sequence[Request]) -> bool:
        """Open the machine for some requests; return whether such a machine suits them.

        Of lists and texts the types depend on how long the longest one is.
        """
        if any(isinstance(leaf, str | bytes | list) for leaf in requests[0].leaves):
            return False
        lanes = self.width(len(requests))
        args, kwargs = stacked(requests, lanes)
        if not waits(self.kind.asked._arguments(args, kwargs, alone=True)[0], lanes):
            return False
        program, call = self.kind.asked._arguments(args, kwargs)
        if not suits(program, call):
            return False
        try:
            self.run = OpenRun.before(program, call)
        except TooLargeError:
            return False
        return True

    def turn(self, requests: Sequence[Request], alone: bool) -> tuple[list[tuple[Request, Answer]], list[Request]]:
        """Make a turn.

        Args:
            requests: those that take idle lanes.
            alone: whether nobody can ask before an answer comes.

        Returns:
            Requests with their answers, and those which need another machine, with more room for lists.
        """
        run, now = self.run, time.monotonic()
        assert run is not None
        if not (requests or run.live):
            return [], []
        self._resize(run, requests)
        occupants, call = [Occupant(request, now) for request in requests], None
        if requests:
            args, kwargs = stacked(requests, run.lanes)
            _, call = self.kind.asked._arguments(args, kwargs)
        compiles = run.compiles
        full = len(requests) + len(run.live) == run.lanes
        seconds = ALONE if alone else FULL if full else OPEN
        seconds = seconds if self.timeout is None else min(seconds, self.timeout / 4)
        ended, raw = run.turn(call, occupants, seconds, on_device=self.kind.keep)
        self.idled += (time.monotonic() - now) * (1 - (len(run.live) + len(ended)) / run.lanes)
        if compiles:  # which does not count
            for lane in run.live:
                run.owners[lane].since = time.monotonic()
        return self._answers([occupant.request for occupant in ended], raw)

    def left(self) -> list[tuple[Request, Answer]]:
        """Leave the lanes of requests that nobody waits for, and of those whose time is over; return these."""
        late: list[tuple[Request, Answer]] = []
        run, now = self.run, time.monotonic()
        if run is None:
            return late
        for lane in run.live:
            occupant: Occupant = run.owners[lane]
            if not occupant.request.dropped:
                if self.timeout is None or now - occupant.since <= self.timeout:
                    continue
                late.append((occupant.request, Answer(None, self._error(occupant.request, run.as_it_is(lane), 0))))
            run.leave(lane)
        return late

    def _resize(self, run: OpenRun, requests: Sequence[Request]) -> None:
        needed = len(run.live) + len(requests)
        wanted = self.width(needed)
        self.few = self.few + 1 if 2 * wanted <= run.lanes else 0
        fewer = self.few >= FEW and (self.idled > COMPILING or run.was_compiled(wanted))
        if needed <= run.lanes and not fewer:
            return
        some = [*requests, *(run.owners[lane].request for lane in run.live)][:1]
        if some:
            args, kwargs = stacked(some, wanted)
            run.resize(self.kind.asked._arguments(args, kwargs)[1])
            self.few, self.idled = 0, 0.0

    def _answers(
        self, requests: Sequence[Request], raw: RawResult
    ) -> tuple[list[tuple[Request, Answer]], list[Request]]:
        """The answers to requests whose results these are, by their places, and those that need more room."""
        assert self.run is not None
        if not requests:
            return [], []
        status = np.asarray(raw.status)[: len(requests)]
        full = {int(k) for k in np.flatnonzero(status == int(Status.LIST_FULL))}
        if full and not self._grow(raw):
            full = set()
        failed = {int(k) for k in np.flatnonzero(status)} - full
        values = self.kind.asked._values(self.run.program, raw)
        rows = self.kept(values, len(requests)) if self.kind.keep else values.rows(len(requests), {*failed, *full})
        answers = [
            (request, Answer(row, self._error(request, raw, k) if k in failed else None))
            for k, (request, row) in enumerate(zip(requests, rows, strict=True))
            if k not in full
        ]
        return answers, [requests[k] for k in full]

    def _grow(self, raw: RawResult) -> bool:
        """Let the next machine have more room for lists, of which some lanes had too little, if it may have more."""
        assert self.run is not None
        program = self.run.program
        larger = rooms_after(program, lanes_full(program, raw))
        if larger:
            program.recompile.remember(larger[0])
        return bool(larger)

    def _error(self, request: Request, raw: RawResult, row: int) -> BaseException:
        """The error of a request whose results are in this row."""
        assert self.run is not None
        own = raw.of_lanes(lambda x: x[row : row + 1])
        return self.kind.asked._error(self.run.program, own, *stacked([request], 1))
