"""The scheduler: which requests make the next batch, and when it is due."""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any

from pcbatch.ask.answers import Values
from pcbatch.ask.arena import Arena
from pcbatch.ask.lanes import FEWEST, Lanes
from pcbatch.ask.lanes import MOST as MOST_LANES
from pcbatch.ask.report import Counts, Report
from pcbatch.ask.request import Answer, Kind, Request, stacked
from pcbatch.call.usage import usage
from pcbatch.diagnostics.short_repr import short
from pcbatch.errors import UsageError
from pcbatch.jax_settings import settings
from pcbatch.lowering.typing.pytree import flatten
from pcbatch.runs.run_options import seconds

PATIENCE = 4  # batches of other kinds that may go before the oldest request of a kind
MOST = 4096  # requests of a batch
REMEMBERED = 256  # kinds of which it is known that their requests make batches
DIVIDED = 16  # requests of which two batches may be made, so that the host works while the other one runs

Work = Callable[[], Callable[[], None]]  # begins something, and returns what waits for its end and delivers answers


@dataclass(frozen=True, slots=True)
class Settings:
    """The options of a server: how its requests become batches; see `serving`."""

    min_batch: int | None = None
    max_wait: float | None = None
    buckets: tuple[int, ...] | None = None
    timeout: float | None = None
    continuous: bool = True

    @property
    def most(self) -> int:
        """The most requests of a batch."""
        return MOST if self.buckets is None else self.buckets[-1]

    def size(self, requests: int) -> int:
        """Return the examples of the call that answers so many requests."""
        if self.buckets is None:
            return 1 << (requests - 1).bit_length()
        return next(size for size in self.buckets if size >= requests)

    def lanes(self, requests: int) -> int:
        """Return the lanes of a machine that stays open, for so many requests."""
        return self.size(min(max(requests, FEWEST), self.most, MOST_LANES))


def checked_settings(min_batch: Any, max_wait: Any, buckets: Any, timeout: Any, continuous: Any) -> Settings:
    """Check the options of `serving`; a batch that waits for others waits for two milliseconds, if not told."""
    if min_batch is not None:
        _positive("min_batch", min_batch)
    if buckets is not None:
        if isinstance(buckets, int) or not (buckets := tuple(buckets)):
            title = f"buckets must be sizes of batches, not {short(buckets)}"
            raise usage("PCB470", title, help="write `buckets=(8, 64, 512)`, or leave it out for powers of two")
        for size in buckets:
            _positive("buckets", size)
        buckets = tuple(sorted(buckets))
    wait = None if max_wait is None else seconds("max_wait", max_wait)
    if min_batch is not None and wait is None:
        wait = 0.002
    if not isinstance(continuous, bool):
        title = f"continuous must be True or False, not {short(continuous)}"
        raise usage("PCB470", title, help="leave it out, or write `continuous=False` for batches alone")
    return Settings(min_batch, wait, buckets, None if timeout is None else seconds("timeout", timeout), continuous)


def _positive(name: str, value: Any) -> None:
    if not isinstance(value, int) or isinstance(value, bool) or value < 1:
        title = f"{name} must be a positive integer, not {short(value)}"
        raise usage("PCB470", title, help=f"leave {name} out, or give a number such as 8")


@dataclass(slots=True, eq=False)
class Scheduler:
    """The requests that wait, by kind, and what has been done. Not safe for threads: who shares it has a lock.

    The largest queue goes first, as it makes the best batch; a request that was passed over `PATIENCE` times goes
    before it.

    Attributes:
        settings: the options.
        queues: the requests that wait, by kind.
        counts: what has been done.
        arenas: the results that stay on the device, by structure.
        lanes: the machines that stay open, by the kind whose requests take their lanes.
        closing: machines whose lists have too little room: they take no more requests.
        again: requests that were in lanes of such machines, and wait once more.
    """

    settings: Settings = field(default_factory=Settings)
    queues: dict[Kind, deque[Request]] = field(default_factory=dict)
    counts: Counts = field(default_factory=Counts)
    arenas: dict[Any, Arena] = field(default_factory=dict)
    lanes: dict[Kind, Lanes] = field(default_factory=dict)
    closing: list[Lanes] = field(default_factory=list)
    again: deque[Request] = field(default_factory=deque)
    _batches: dict[Any, bool] = field(default_factory=dict)  # the latest kinds that make batches: do they print?

    def add(self, request: Request) -> None:
        """Let a request wait."""
        self.queues.setdefault(request.kind, deque()).append(request)

    @property
    def waiting(self) -> int:
        """The number of requests that wait, for a batch, a lane, or the end of the one that they have."""
        live = sum(lanes.live for lanes in self._machines())
        return sum(map(len, self.queues.values())) + len(self.again) + live

    def take(self, at_once: bool, halves: bool = False) -> Work | None:
        """Take the requests of the next batch, or for lanes that are idle; None if nothing is due.

        Args:
            at_once: whether nobody can ask before an answer comes, so that waiting for more would be in vain.
            halves: whether it shall leave half of many requests for another batch.
        """
        self._sweep()
        now = time.monotonic()
        kinds: list[Kind | Lanes] = [
            kind for kind in self.queues if kind not in self.lanes and (at_once or self._due(kind) <= now)
        ]
        due = kinds + [lanes for lanes in self._machines() if not lanes.busy]
        if not due:
            return None
        chosen = max(due, key=self._urgency)
        for each in due:
            passing = each if isinstance(each, Lanes) else self.queues[each][0]
            passing.passed = 0 if each is chosen else passing.passed + 1
        if isinstance(chosen, Kind):
            queue = self.queues[chosen]
            if chosen.key in self._batches or not self.settings.continuous:
                count = (len(queue) + 1) // 2 if halves and len(queue) >= DIVIDED else len(queue)
                return partial(self.begin, [queue.popleft() for _ in range(min(count, self.settings.most))])
            lanes = self.lanes[chosen] = Lanes(chosen, self.settings.lanes, self.settings.timeout, self._kept)
        else:
            lanes = chosen
        lanes.busy, queue = True, self._queue_of(lanes)
        some = [queue.popleft() for _ in range(min(len(queue), lanes.idle))]
        return partial(self._turn, lanes, some, at_once)

    def _machines(self) -> list[Lanes]:
        return [*self.lanes.values(), *self.closing]

    def _queue_of(self, lanes: Lanes) -> deque[Request]:
        """The requests that may take these lanes."""
        return self.queues.get(lanes.kind, deque()) if self.lanes.get(lanes.kind) is lanes else deque()

    def _urgency(self, due: Kind | Lanes) -> tuple[bool, int, float]:
        if isinstance(due, Kind):
            queue = self.queues[due]
            return queue[0].passed >= PATIENCE, len(queue), -queue[0].since
        queue = self._queue_of(due)
        return due.passed >= PATIENCE, due.live + len(queue), -queue[0].since if queue else 0.0

    def until_due(self) -> float | None:
        """Return the seconds until a batch is due; None if no request waits."""
        self._sweep()
        if any(not lanes.busy for lanes in self._machines()):
            return 0.0
        times = [self._due(kind) for kind in self.queues if kind not in self.lanes]
        return max(0.0, min(times) - time.monotonic()) if times else None

    def _due(self, kind: Kind) -> float:
        """The time at which requests of a kind are due, whether or not more come."""
        own, queue = self.settings, self.queues[kind]
        if own.max_wait is None or len(queue) >= min(own.min_batch or own.most, own.most):
            return queue[0].since
        return queue[0].since + own.max_wait

    def _sweep(self) -> None:
        while self.again:
            request = self.again.pop()
            self.queues.setdefault(request.kind, deque()).appendleft(request)
        for kind, queue in list(self.queues.items()):
            while queue and queue[0].dropped:
                queue.popleft()
            if not queue:
                del self.queues[kind]

    def _turn(self, lanes: Lanes, requests: Sequence[Request], alone: bool) -> Callable[[], None]:
        """Return what makes a turn of lanes that stay open, in which some requests take the idle ones."""

        def make() -> None:
            try:
                self._make_turn(lanes, [request for request in requests if not request.dropped], alone)
            except Exception as error:  # of the machine as a whole, which is that of each request
                self._remove(lanes)
                for request in dict.fromkeys([*requests, *lanes.requests]):
                    request.settle(Answer(None, error))
            finally:
                lanes.busy = False

        return make

    def _make_turn(self, lanes: Lanes, requests: Sequence[Request], alone: bool) -> None:
        kind = lanes.kind
        if settings() != kind.settings:
            raise _other_settings()
        if lanes.run is None and not (requests and lanes.opened(requests)):
            self._remove(lanes)
            if requests:
                self._make_batches(kind, requests)
                self.begin(requests)()
            return
        for request, answer in lanes.left():
            request.settle(answer)
        begun, live = time.monotonic(), lanes.live + len(requests)
        answers, again = lanes.turn(requests, alone)
        now = time.monotonic()
        waits = [now - request.since for request, _ in answers]
        self.counts.add_turn(waits, (live + lanes.live) / 2, now - begun, (hash(kind), lanes.run and lanes.run.lanes))
        for request, answer in answers:
            request.settle(answer)
        if again:
            self.again.extend(again)
            self._remove(lanes)
            self.closing.append(lanes)
        if not lanes.live and not self._queue_of(lanes):
            lanes.close()
            self._remove(lanes)

    def _remove(self, lanes: Lanes) -> None:
        if lanes in self.closing:
            self.closing.remove(lanes)
        if self.lanes.get(lanes.kind) is lanes:
            del self.lanes[lanes.kind]

    def _make_batches(self, kind: Kind, requests: Sequence[Request]) -> None:
        """Let requests of a kind make batches from now on."""
        program, _ = kind.asked._arguments(*stacked(requests, len(requests)))
        self._batches[kind.key] = program.prints
        for key in list(self._batches)[:-REMEMBERED]:
            del self._batches[key]

    def begin(self, requests: Sequence[Request]) -> Callable[[], None]:
        """Begin the batch of some requests, and return what waits for its end and delivers the answers."""
        requests = [request for request in requests if not request.dropped]
        if not requests:
            return lambda: None
        kind = requests[0].kind
        # A copy of the last example would print once more.
        size = len(requests) if self._batches.get(kind.key) else self.settings.size(len(requests))
        begun, finish = time.monotonic(), self._begun(kind, requests, size)

        def deliver() -> None:
            answers = finish()
            now = time.monotonic()
            self.counts.add([now - request.since for request in requests], size, now - begun, (hash(kind), size))
            for request, answer in zip(requests, answers, strict=True):
                request.settle(answer)

        return deliver

    def _begun(self, kind: Kind, requests: Sequence[Request], size: int) -> Callable[[], Sequence[Answer]]:
        count = len(requests)
        try:
            if settings() != kind.settings:
                raise _other_settings()
            args, kwargs = stacked(requests, size)
            outcome = kind.asked._begun(args, kwargs, self.settings.timeout)
        except Exception as error:
            return lambda error=error: [Answer(None, error)] * count  # type: ignore[misc]

        def finish() -> Sequence[Answer]:
            try:
                values, errors = outcome()
                rows = self._kept(values, count) if kind.keep else values.rows(count, errors)
            except Exception as error:  # of the call as a whole, which is that of each request
                return [Answer(None, error)] * count
            return [Answer(row, errors.get(k)) for k, row in enumerate(rows)]

        return finish

    def _kept(self, values: Values, count: int) -> Sequence[Any]:
        leaves, tree = flatten(values.batch)  # dicts of another order are others
        key = tree, tuple((leaf.shape[1:], str(leaf.dtype)) for leaf in leaves)
        if key not in self.arenas:
            self.arenas[key] = Arena(values.batch)
        return self.arenas[key].stored(values.batch, count)

    def report(self) -> Report:
        """Return what was done so far."""
        return self.counts.report()


def _other_settings() -> UsageError:
    title = "a setting of JAX differs between the thread that asks and the one that answers"
    note = "what a context such as `jax.enable_x64()` sets holds in its own thread alone"
    help = 'set it for the whole program: `jax.config.update("jax_enable_x64", True)`'
    return usage("PCB471", title, note, help=help)
