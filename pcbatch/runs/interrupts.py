"""Ctrl-C while a machine runs: the run stops between two trips, and its state stays usable."""

from __future__ import annotations

import signal
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import FrameType
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from pcbatch.runs.run_handle import Run


class Interrupted(KeyboardInterrupt):
    """Ctrl-C has stopped a run. `machine` is its state: `machine.advance()` continues it, `machine.save(path)` keeps
    it.

    It is a `KeyboardInterrupt`, so programs that do not know it end as usual. `machine` is None where `f.map` got its
    inputs in chunks; a checkpoint, if there is one, holds what was done.

    Example:
        >>> try:
        ...     result = f.run(xs, progress=True)
        ... except pcbatch.Interrupted as stopped:
        ...     print(stopped.machine.progress())
        ...     stopped.machine.save("run.npz")  # doctest: +SKIP
    """

    def __init__(self, machine: Run | None = None, message: str = "") -> None:
        super().__init__(message or ("" if machine is None else f"stopped by Ctrl-C: {machine.progress()}"))
        self.machine = machine


@contextmanager
def interruptible() -> Iterator[Callable[[], bool]]:
    """Only note Ctrl-C inside, and yield a function that tells whether it was pressed. A second one stops Python at
    once.

    A Python exception between a donation and its assignment would lose the state. Nothing is changed in other threads
    than the main one, which get no signals, and where the program handles them itself.
    """
    noted: list[int] = []
    own = threading.current_thread() is threading.main_thread()
    if not own or signal.getsignal(signal.SIGINT) is not signal.default_int_handler:
        yield lambda: False
        return

    def note(number: int, frame: FrameType | None) -> Any:
        if noted:
            signal.default_int_handler(number, frame)
        noted.append(number)

    signal.signal(signal.SIGINT, note)
    try:
        yield lambda: bool(noted)
    finally:
        signal.signal(signal.SIGINT, signal.default_int_handler)
