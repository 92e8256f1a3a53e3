"""The scheduler: which requests make the next batch, and when it is due."""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

import jax

from pcbatch.ask.arena import Arena
from pcbatch.ask.report import Counts, Report
from pcbatch.ask.request import Answer, Kind, Request, stacked
from pcbatch.call.usage import usage
from pcbatch.diagnostics.short_repr import short
from pcbatch.errors import UsageError
from pcbatch.lowering.typing.jax_types import settings
from pcbatch.runs.run_options import seconds

PATIENCE = 4  # batches of other kinds that may go before the oldest request of a kind
MOST = 4096  # requests of a batch
DIVIDED = 16  # requests of which two batches may be made, so that the host works while the other one runs


@dataclass(frozen=True, slots=True)
class Settings:
    """The options of a server: how its requests become batches; see `serving`."""

    min_batch: int | None = None
    max_wait: float | None = None
    buckets: tuple[int, ...] | None = None
    timeout: float | None = None

    @property
    def most(self) -> int:
        """The most requests of a batch."""
        return MOST if self.buckets is None else self.buckets[-1]

    def size(self, requests: int) -> int:
        """Return the examples of the call that answers so many requests."""
        if self.buckets is None:
            return 1 << (requests - 1).bit_length()
        return next(size for size in self.buckets if size >= requests)


def checked_settings(min_batch: Any, max_wait: Any, buckets: Any, timeout: Any) -> Settings:
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
    return Settings(min_batch, wait, buckets, None if timeout is None else seconds("timeout", timeout))


def _positive(name: str, value: Any) -> None:
    if not isinstance(value, int) or isinstance(value, bool) or value < 1:
        title = f"{name} must be a positive integer, not {short(value)}"
        raise usage("PCB470", title, help=f"leave {name} out, or give a number such as 8")


@dataclass(slots=True, eq=False)
class Scheduler:
    """The requests that wait, by kind, and what has been done. Not safe for threads: who shares it has a lock.

    The largest queue goes first, as it makes the best batch; a request that was passed over `PATIENCE` times goes
    before it.
    """

    settings: Settings = field(default_factory=Settings)
    queues: dict[Kind, deque[Request]] = field(default_factory=dict)
    counts: Counts = field(default_factory=Counts)
    arenas: dict[Any, Arena] = field(default_factory=dict)

    def add(self, request: Request) -> None:
        """Let a request wait."""
        self.queues.setdefault(request.kind, deque()).append(request)

    @property
    def waiting(self) -> int:
        """The number of requests that wait."""
        return sum(map(len, self.queues.values()))

    def take(self, at_once: bool, halves: bool = False) -> list[Request]:
        """Take the requests of the next batch; none if none is due.

        Args:
            at_once: whether nobody can ask before an answer comes, so that waiting for more would be in vain.
            halves: whether it shall leave half of many requests for another batch.
        """
        self._sweep()
        due = [queue for queue in self.queues.values() if at_once or self._due(queue) <= time.monotonic()]
        if not due:
            return []
        chosen = max(due, key=lambda queue: (queue[0].passed >= PATIENCE, len(queue), -queue[0].since))
        for queue in self.queues.values():
            queue[0].passed += queue is not chosen
        count = (len(chosen) + 1) // 2 if halves and len(chosen) >= DIVIDED else len(chosen)
        return [chosen.popleft() for _ in range(min(count, self.settings.most))]

    def until_due(self) -> float | None:
        """Return the seconds until a batch is due; None if no request waits."""
        self._sweep()
        times = [self._due(queue) for queue in self.queues.values()]
        return max(0.0, min(times) - time.monotonic()) if times else None

    def _due(self, queue: deque[Request]) -> float:
        """The time at which a queue is due, whether or not more requests come."""
        own = self.settings
        if own.max_wait is None or len(queue) >= min(own.min_batch or own.most, own.most):
            return queue[0].since
        return queue[0].since + own.max_wait

    def _sweep(self) -> None:
        for kind, queue in list(self.queues.items()):
            while queue and queue[0].dropped:
                queue.popleft()
            if not queue:
                del self.queues[kind]

    def answer(self, requests: Sequence[Request]) -> None:
        """Run the batch of some requests, and deliver the answers."""
        self.begin(requests)()

    def begin(self, requests: Sequence[Request]) -> Callable[[], None]:
        """Begin the batch of some requests, and return what waits for its end and delivers the answers."""
        requests = [request for request in requests if not request.dropped]
        if not requests:
            return lambda: None
        kind, size = requests[0].kind, self.settings.size(len(requests))
        begun, finish = time.monotonic(), self._begun(kind, requests, size)

        def deliver() -> None:
            answers = finish()
            now = time.monotonic()
            self.counts.add([now - request.since for request in requests], size, now - begun, (hash(kind), size))
            for request, answer in zip(requests, answers, strict=True):
                request.deliver(answer)

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
                rows = self._kept(kind, values, count) if kind.keep else values.rows(count, errors)
            except Exception as error:  # of the call as a whole, which is that of each request
                return [Answer(None, error)] * count
            return [Answer(row, errors.get(k)) for k, row in enumerate(rows)]

        return finish

    def _kept(self, kind: Kind, values: Any, count: int) -> Sequence[Any]:
        leaves, tree = jax.tree.flatten(values.batch)
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
