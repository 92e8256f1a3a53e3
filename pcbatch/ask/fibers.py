"""`gather`: plain Python in many fibers, of which each sleeps while it waits for a batched function."""

from __future__ import annotations

import asyncio
import time
import traceback
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sized
from contextvars import copy_context
from dataclasses import dataclass, field
from functools import partial
from typing import TYPE_CHECKING, Any

from pcbatch.ask.request import Answer, Request
from pcbatch.ask.scheduler import Scheduler
from pcbatch.call.usage import usage
from pcbatch.diagnostics.short_repr import short
from pcbatch.runs.run_options import deadline, reporting
from pcbatch.runtime.execute.dealt_program import cores
from pcbatch.runtime.execute.host_loop import RunCounts

if TYPE_CHECKING:
    from greenlet import greenlet

SHOWN = 3  # fibers whose tracebacks are shown when time is over


class GatherTimeout(TimeoutError):
    """The time of a `gather` is over. `results` has what the fibers that have ended returned, and None for the others,
    whose numbers are `running`."""

    def __init__(self, message: str, results: list[Any], running: tuple[int, ...]) -> None:
        super().__init__(message)
        self.results, self.running = results, running


class Fiber:
    """One call of the user's function.

    Attributes:
        number: which item it is given.
        item: that item.
        group: the `gather` that has begun it.
        frames: its stack, which is left and entered again.
        answer: what it waits for, once it is there.
    """

    __slots__ = ("answer", "frames", "group", "item", "number")

    def __init__(self, number: int, item: Any, group: Group) -> None:
        from greenlet import greenlet

        self.number, self.item, self.group = number, item, group
        self.answer: Answer | None = None
        self.frames: greenlet = greenlet(self._run, group.loop.hub)
        self.frames.gr_context = copy_context()
        _fibers[self.frames] = self

    def _run(self) -> None:
        group = self.group
        try:
            group.results[self.number] = Answer(group.function(self.item))
        except Exception as error:
            group.results[self.number] = Answer(None, error)
            if group.stops and group.error is None:
                group.error = error
        finally:
            del group.running[self.number], _fibers[self.frames]
        try:
            group.fill()
        except Exception as error:  # of the iterator that gives the items
            group.error = group.error or error
        group.wake()

    def wait(self, request: Request) -> Any:
        """Let others run until there is an answer."""
        request.deliver = self._deliver
        self.answer = None
        self.group.loop.scheduler.add(request)
        try:
            self.group.loop.hub.switch()
        finally:
            request.dropped = self.answer is None
        assert self.answer is not None
        return self.answer.get()

    def _deliver(self, answer: Answer) -> None:
        self.answer = answer
        self.group.loop.ready.append(self)


_fibers: dict[Any, Fiber] = {}


def current_fiber() -> Fiber | None:
    """Return the fiber that runs; None outside of `gather`, and in coroutines of a loop that a fiber has begun."""
    if not _fibers:
        return None
    from greenlet import getcurrent

    fiber = _fibers.get(getcurrent())
    return fiber if fiber is None or running_loop() is fiber.group.loop.coroutines else None


def running_loop() -> asyncio.AbstractEventLoop | None:
    """Return the loop whose coroutines this thread runs; None outside of one."""
    try:
        return asyncio.get_running_loop()
    except RuntimeError:
        return None


class Loop:
    """The fibers of one thread, and what they ask for: those that are ready run, and when all wait a batch is run."""

    def __init__(self, scheduler: Scheduler) -> None:
        from greenlet import getcurrent

        self.scheduler, self.hub = scheduler, getcurrent()
        self.ready: deque[Fiber] = deque()
        self.timed: list[Group] = []
        self.coroutines = running_loop()
        self.running: deque[Callable[[], None]] = deque()  # batches that have begun

    def run(self, group: Group, tell: Callable[[], object] | None) -> None:
        """Run fibers until a group has settled."""
        while not group.settled:
            if not self.ready:
                self._answer()
            for _ in range(len(self.ready)):
                self.ready.popleft().frames.switch()
            for each in self.timed:
                each.look_at_clock()
            if tell is not None:
                tell()

    def _answer(self) -> None:
        """Begin up to two batches, and wait for the first of them: the second one runs while its fibers do."""
        while len(self.running) < 2:
            halves = cores() > 1 and not self.running
            if (work := self.scheduler.take(at_once=True, halves=halves)) is None:
                break
            self.running.append(work())
        if self.running:
            self.running.popleft()()


@dataclass(slots=True, eq=False)
class Group:
    """The fibers of one `gather`: one for each item, at most `limit` at a time.

    Attributes:
        function: what is called with each item.
        items: those that are left.
        limit: how many fibers run at a time; None: all.
        loop: in which they run.
        around: the fiber that has called `gather`, if one has.
        until: the time of `time.monotonic` at which it ends; None: no limit.
        stops: whether the first error ends all.
        results: by number, of the fibers that have ended.
        running: those that have not.
        begun: how many have begun.
        exhausted: whether no item is left.
        error: what has ended it before its time.
    """

    function: Callable[[Any], Any]
    items: Iterator[Any]
    limit: int | None
    loop: Loop
    around: Fiber | None
    until: float | None
    stops: bool
    results: dict[int, Answer] = field(default_factory=dict)
    running: dict[int, Fiber] = field(default_factory=dict)
    begun: int = 0
    exhausted: bool = False
    error: BaseException | None = None

    @property
    def settled(self) -> bool:
        """Whether every item has its result, or an error has ended the group."""
        return self.error is not None or (self.exhausted and not self.running)

    def fill(self) -> None:
        """Begin fibers for the next items, as many as may run."""
        while not self.settled and not self.exhausted and (self.limit is None or len(self.running) < self.limit):
            try:
                item = next(self.items)
            except StopIteration:
                self.exhausted = True
                return
            fiber = self.running[self.begun] = Fiber(self.begun, item, self)
            self.begun += 1
            self.loop.ready.append(fiber)

    def look_at_clock(self) -> None:
        """End the group if its time is over."""
        if self.until is not None and time.monotonic() > self.until and not self.settled:
            self.error = _timeout(self)
            self.wake()

    def wake(self) -> None:
        """Let the fiber that has called `gather` go on, if all is done."""
        if self.settled and self.around is not None:
            self.loop.ready.append(self.around)
            self.around = None

    def close(self) -> None:
        """End the fibers that have not ended: what they wait for raises `GreenletExit` in them."""
        from greenlet import getcurrent

        if self in self.loop.timed:
            self.loop.timed.remove(self)
        if not self.running:
            return
        self.loop.ready = deque(fiber for fiber in self.loop.ready if fiber.group is not self)
        for fiber in list(self.running.values()):
            fiber.frames.parent = getcurrent()
            fiber.frames.throw()
            _fibers.pop(fiber.frames, None)


def gathered(
    function: Callable[..., Any],
    items: Iterable[Any],
    *,
    limit: int | None,
    progress: Any,
    timeout: float | None,
    return_exceptions: bool,
) -> list[Any]:
    """Run `function(item)` for each item in a fiber of its own; see `pcbatch.gather`."""
    _need_greenlet()
    if limit is not None and (not isinstance(limit, int) or isinstance(limit, bool) or limit < 1):
        title = f"limit must be a positive integer or None, not {short(limit)}"
        raise usage("PCB470", title, help="leave limit out, or give a number such as 100")
    around = current_fiber()
    loop = Loop(Scheduler()) if around is None else around.group.loop
    group = Group(function, iter(items), limit, loop, around, deadline(timeout), not return_exceptions)
    if group.until is not None:
        loop.timed.append(group)
    total = len(items) if isinstance(items, Sized) else None
    with reporting(progress, "fibers") as report:
        try:
            group.fill()
            if around is None:
                loop.run(group, report and partial(_tell, report, group, total))
            elif not group.settled:
                loop.hub.switch()
        finally:
            group.close()
    if group.error is not None:
        raise group.error
    answers = [group.results[k] for k in range(group.begun)]
    return [answer.value if answer.error is None else answer.error for answer in answers]


def _tell(report: Callable[[RunCounts], object], group: Group, total: int | None) -> None:
    report(RunCounts(total, finished=len(group.results)))


def _timeout(group: Group) -> GatherTimeout:
    running = tuple(sorted(group.running))
    lines = [f"the time is over, and {len(running)} of {group.begun} fibers have not ended"]
    for number in running[:SHOWN]:
        frame = group.running[number].frames.gr_frame
        where = "".join(traceback.format_stack(frame)) if frame is not None else "  it has not begun\n"
        lines.append(f"fiber {number} waits here (most recent call last):\n{where}".rstrip())
    results = [group.results[k].value if k in group.results else None for k in range(group.begun)]
    return GatherTimeout("\n".join(lines), results, running)


def _need_greenlet() -> None:
    try:
        import greenlet  # noqa: F401
    except ImportError:
        title = "`pcbatch.gather` needs the package greenlet, which is not installed"
        raise usage("PCB470", title, help="install it with `pip install 'pcbatch[serving]'`") from None
