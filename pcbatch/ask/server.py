"""`serving`: requests of any thread or coroutine, answered by one thread that runs batches."""

from __future__ import annotations

import asyncio
import threading
import weakref
from collections import deque
from collections.abc import Awaitable
from contextlib import suppress
from functools import partial
from types import TracebackType
from typing import Any

from pcbatch.ask.report import Report
from pcbatch.ask.request import Answer, Asked, Request
from pcbatch.ask.scheduler import Scheduler, Settings
from pcbatch.call.usage import usage


class Server:
    """A thread that answers requests for some functions, or for all of them; made by `pcbatch.serving`.

    Example:
        >>> with pcbatch.serving(policy, min_batch=8) as server:
        ...     with ThreadPoolExecutor() as pool:
        ...         results = list(pool.map(play, games))
        ...     print(server.report())  # doctest: +SKIP
    """

    def __init__(self, functions: tuple[Asked, ...], settings: Settings) -> None:
        self.scheduler = Scheduler(settings)
        self._functions = functions
        self._changed = threading.Condition()
        self._ending = False
        self._thread = threading.Thread(target=self._work, name="pcbatch.serving", daemon=True)

    def serves(self, asked: Asked) -> bool:
        """Whether requests for a function come here."""
        functions = (getattr(function, "batched", function) for function in self._functions)  # of a method, too
        return not self._functions or any(asked.fn is function.fn for function in functions)

    def __enter__(self) -> Server:
        self._thread.start()
        _servers.append(self)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, where: TracebackType | None
    ) -> None:
        _servers.remove(self)
        with self._changed:
            self._ending = True
            self._changed.notify()
        self._thread.join()

    def submit(self, request: Request) -> None:
        """Let a request wait for its batch."""
        with self._changed:
            if self._ending:
                raise usage("PCB471", "a request comes after its server has ended", help="ask inside of `serving`")
            self.scheduler.add(request)
            self._changed.notify()

    def wait(self, request: Request) -> Any:
        """Block this thread until there is an answer."""
        done, answers = threading.Event(), list[Answer]()

        def deliver(answer: Answer) -> None:
            answers.append(answer)
            done.set()

        request.deliver = deliver
        self.submit(request)
        try:
            done.wait()
        finally:
            request.dropped = not answers
        return answers[0].get()

    def _work(self) -> None:
        while True:
            with self._changed:
                while (work := self.scheduler.take(at_once=self._ending)) is None:
                    if self._ending:
                        return
                    self._changed.wait(self.scheduler.until_due())
            work()()
            del work  # its answers are not kept until the next one comes

    def report(self) -> Report:
        """Return what was done so far."""
        return self.scheduler.report()


_servers: list[Server] = []


def server_of(asked: Asked) -> Server | None:
    """Return the server that answers requests for a function, the innermost one; None if there is none."""
    return next((server for server in reversed(_servers) if server.serves(asked)), None)


class LoopBatches:
    """The requests of the coroutines of one event loop. Outside of `serving` a batch is run when all of them wait, in
    the loop's own executor, so that coroutines that wait for other things go on."""

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self._loop = weakref.ref(loop)
        self._scheduler = Scheduler()
        self._seen = 0  # requests that there were when the loop was last looked at
        self._looking = self._running = self._waking = False
        self._settled: deque[tuple[asyncio.Future[Any], Answer]] = deque()

    def settle(self, future: asyncio.Future[Any], answer: Answer) -> None:
        """Let a coroutine go on with its answer; from any thread. Those of one batch wake the loop once."""
        self._settled.append((future, answer))
        if not self._waking and (loop := self._loop()) is not None:
            self._waking = True
            with suppress(RuntimeError):  # the loop was closed meanwhile
                loop.call_soon_threadsafe(self._wake)

    def _wake(self) -> None:
        self._waking = False
        while self._settled:
            future, answer = self._settled.popleft()
            if future.done():
                continue
            if answer.error is None:
                future.set_result(answer.value)
            else:
                future.set_exception(answer.error)

    def submit(self, request: Request) -> None:
        """Let a request wait until the loop has nothing else to do."""
        self._scheduler.add(request)
        self._look()

    def _look(self) -> None:
        loop = self._loop()
        if loop is not None and not self._looking and not self._running:
            self._looking, self._seen = True, 0
            loop.call_soon(self._again, loop)

    def _again(self, loop: asyncio.AbstractEventLoop) -> None:
        if self._scheduler.waiting > self._seen:  # others have asked since: more may
            self._seen = self._scheduler.waiting
            loop.call_soon(self._again, loop)
            return
        self._looking = False
        if (work := self._scheduler.take(at_once=False)) is not None:
            self._running = True
            try:
                loop.run_in_executor(None, lambda: work()()).add_done_callback(self._done)
            except RuntimeError:  # it was shut down
                work()()
                self._done(None)

    def _done(self, _: Any) -> None:
        self._running = False
        if self._scheduler.waiting:
            self._look()


_loops: weakref.WeakKeyDictionary[asyncio.AbstractEventLoop, LoopBatches] = weakref.WeakKeyDictionary()


def awaited(request: Request, loop: asyncio.AbstractEventLoop) -> Awaitable[Any]:
    """Return what a coroutine awaits: the answer to a request."""
    future: asyncio.Future[Any] = loop.create_future()

    def drop(future: asyncio.Future[Any]) -> None:
        request.dropped = future.cancelled()

    if (batches := _loops.get(loop)) is None:
        batches = _loops[loop] = LoopBatches(loop)
    request.deliver = partial(batches.settle, future)
    future.add_done_callback(drop)
    server = server_of(request.kind.asked)
    (batches if server is None else server).submit(request)
    return future
