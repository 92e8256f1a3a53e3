"""Options of a monitored run, which a call takes beside its arguments: progress, a time limit, a checkpoint file."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from pcbatch.call.usage import usage
from pcbatch.diagnostics.deprecated import warn_of_old
from pcbatch.diagnostics.short_repr import short
from pcbatch.runs.checkpoint_file import checked_path
from pcbatch.runtime.execute.host_loop import Report, RunCounts

EVERY = 60.0  # seconds between two checkpoints
FOREVER = 1e12  # seconds; a number of trips can be made of it without overflow


@dataclass(frozen=True, slots=True)
class RunOptions:
    """The options of one monitored run, checked.

    Attributes:
        progress: a function of the numbers of finished and of all inputs, or True for a bar.
        timeout: seconds after which the run stops; compiling is not counted.
        save_to: the file for checkpoints.
        every: seconds between two checkpoints.
    """

    progress: Any = None
    timeout: float | None = None
    save_to: Path | None = None
    every: float = EVERY

    @staticmethod
    def pop_from(
        kwargs: dict[str, Any], params: Mapping[str, Any], old: Mapping[str, Any] | None = None
    ) -> RunOptions | None:
        """Take the options out of the keyword arguments of a call; None if there are none.

        Args:
            kwargs: the keyword arguments; options are removed.
            params: the parameters of the function, which go before options of the same name.
            old: those that go before an old name, if they are others.
        """
        values = {name: kwargs.pop(name) for name in NAMES if name in kwargs and name not in params}
        if OLD_NAME in kwargs and OLD_NAME not in (params if old is None else old):
            values["save_to"] = _renamed(kwargs.pop(OLD_NAME), values.get("save_to"))
        return RunOptions.checked(values)

    @staticmethod
    def checked(values: Mapping[str, Any]) -> RunOptions | None:
        """Check options by name; None if no monitored run is wanted.

        Raises:
            UsageError: one of them has no meaning.
        """
        wanted = {name: value for name, value in values.items() if value is not None}
        if wanted.get("progress") is False:
            del wanted["progress"]
        if "every" in wanted:
            wanted["every"] = seconds("every", wanted["every"])
            if "save_to" not in wanted:
                title = "`every` says how often to save the run, and no file is named"
                raise usage("PCB440", title, help='name a file, `save_to="run.npz"`, or leave `every` out')
        if "timeout" in wanted:
            wanted["timeout"] = seconds("timeout", wanted["timeout"])
        if "save_to" in wanted:
            wanted["save_to"] = checked_path(wanted["save_to"])
        return RunOptions(**wanted) if wanted else None

    @property
    def first_given(self) -> str:
        """The name of one option that was given, for messages."""
        values = {"save_to": self.save_to, "timeout": self.timeout, "progress": self.progress}
        return next(name for name, value in values.items() if value is not None)

    def after(self, elapsed: float) -> RunOptions:
        """Return the options of the rest of a run that has taken so many seconds."""
        return self if self.timeout is None else replace(self, timeout=max(0.0, self.timeout - elapsed))


NAMES = tuple(RunOptions.__dataclass_fields__)
OLD_NAME = "checkpoint"  # of `save_to`; one letter away from the option `checkpoints`


def _renamed(old: Any, new: Any) -> Any:
    """Return the value of an option under its old or its new name, and warn of the old one."""
    if new is not None and old is not None:
        title = "`save_to` and `checkpoint` are both given, and are two names of one option"
        raise usage("PCB440", title, help="leave `checkpoint` out: it is the old name of `save_to`")
    warn_of_old("`checkpoint=` is called `save_to=` now", help="write `save_to=path`")
    return new if old is None else old


def seconds(name: str, value: Any) -> float:
    """Return a number of seconds, checked; `name` is the option, for messages."""
    number = isinstance(value, int | float | np.integer | np.floating) and not isinstance(value, bool)
    if number and value >= 0:  # a NaN is not
        return float(min(value, FOREVER))
    raise usage("PCB440", f"{name} must be a number of seconds, not {short(value)}", help=f"write `{name}=60`")


def deadline(timeout: float | None) -> float | None:
    """Return the time of `time.monotonic` at which a time limit ends; None: no limit."""
    return None if timeout is None else time.monotonic() + seconds("timeout", timeout)


def whole_number(name: str, value: Any) -> int | None:
    """Return a number of trips, checked, or None; `name` is the option, for messages."""
    if value is None:
        return None
    if isinstance(value, int | np.integer) and not isinstance(value, bool) and value >= 0:
        return int(value)
    title = f"{name} must be a whole number, zero or more, or None, not {short(value)}"
    raise usage("PCB440", title, help=f"leave {name} out, or give a number such as {name}=10_000")


Progress = Callable[[int, int | None], object]


@contextmanager
def reporting(progress: Any, unit: str) -> Iterator[Report | None]:
    """Yield the function that is called with the counts of a run between two programs; None if there is none.

    Args:
        progress: the option: a function of the numbers of finished and of all inputs, or True for a bar.
        unit: what the bar counts, "lanes" or "inputs".

    Raises:
        UsageError: it is something else, or tqdm is not installed.
    """
    if progress is None or progress is False:
        yield None
    elif progress is True:
        with _bar(unit) as bar:

            def show(counts: RunCounts) -> None:
                bar.total = counts.total
                bar.set_postfix(trips=counts.trips, refresh=False)
                bar.update(counts.finished - bar.n)

            yield show
            bar.refresh()
    elif callable(progress):
        yield lambda counts: progress(counts.finished, counts.total)
    else:
        title = f"progress must be a function of two numbers, or True for a bar, not {short(progress)}"
        raise usage("PCB417", title, help="write `progress=lambda done, total: print(done, total)`")


def _bar(unit: str) -> AbstractContextManager[Any]:
    try:
        from tqdm.auto import tqdm
    except ImportError:
        help = "install it with `pip install tqdm`, or give a function: `progress=lambda done, total: print(done)`"
        raise usage("PCB417", "`progress=True` needs the package tqdm, which is not installed", help=help) from None
    bar: AbstractContextManager[Any] = tqdm(unit=f" {unit}")
    return bar
