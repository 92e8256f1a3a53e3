"""What a call may ask for besides its arguments: progress, a time limit, a file to keep the run in."""

from __future__ import annotations

import sys
import time
import warnings
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from pcbatch.call.arguments import usage
from pcbatch.diagnostics.short_repr import short
from pcbatch.runs.checkpoint_file import checked_path

EVERY = 60.0  # seconds between two checkpoints
FOREVER = 1e12  # seconds; a number of trips can be made of it without overflow


@dataclass(frozen=True, slots=True)
class RunOptions:
    """The options of one call, checked."""

    progress: Any = None
    timeout: float | None = None
    save_to: Path | None = None
    every: float = EVERY

    @staticmethod
    def pop_from(
        kwargs: dict[str, Any], params: Mapping[str, Any], old: Mapping[str, Any] | None = None
    ) -> RunOptions | None:
        """Takes them out of the keyword arguments of a call, unless the function has such parameters; None if there are
        none. `old`: the parameters that go before an old name, if those are others."""
        found = {name: kwargs.pop(name) for name in NAMES if name in kwargs and name not in params}
        if OLD_NAME in kwargs and OLD_NAME not in (params if old is None else old):
            found["save_to"] = _renamed(kwargs.pop(OLD_NAME), found.get("save_to"))
        return RunOptions.of(found)

    @staticmethod
    def of(found: Mapping[str, Any]) -> RunOptions | None:
        """Checks them."""
        wanted = {name: value for name, value in found.items() if value is not None}
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
        """One of them, for messages."""
        asked = {"save_to": self.save_to, "timeout": self.timeout, "progress": self.progress}
        return next(name for name, value in asked.items() if value is not None)


NAMES = tuple(RunOptions.__dataclass_fields__)
OLD_NAME = "checkpoint"  # of `save_to`; one letter away from the option `checkpoints`


def _renamed(old: Any, new: Any) -> Any:
    """The file of a run under the old name of its option."""
    if new is not None and old is not None:
        title = "`save_to` and `checkpoint` are both given, and are two names of one option"
        raise usage("PCB440", title, help="leave `checkpoint` out: it is the old name of `save_to`")
    text = "`checkpoint=` is called `save_to=` now: write `save_to=path`"
    warnings.warn(text, DeprecationWarning, stacklevel=_frames_of_ours())
    return new if old is None else old


def _frames_of_ours() -> int:
    """The `stacklevel`, for the function that asks, of the first frame that is not in this package."""
    frame, level = sys._getframe(1), 1
    while frame.f_back is not None and frame.f_globals.get("__name__", "").partition(".")[0] == "pcbatch":
        frame, level = frame.f_back, level + 1
    return level


def seconds(name: str, value: Any) -> float:
    """A time."""
    number = isinstance(value, int | float | np.integer | np.floating) and not isinstance(value, bool)
    if number and value >= 0:  # a NaN is not
        return float(min(value, FOREVER))
    raise usage("PCB440", f"{name} must be a number of seconds, not {short(value)}", help=f"write `{name}=60`")


def deadline(timeout: float | None) -> float | None:
    """When so many seconds will have passed."""
    return None if timeout is None else time.monotonic() + seconds("timeout", timeout)


def whole_number(name: str, value: Any) -> int | None:
    """A number of trips, or None."""
    if value is None:
        return None
    if isinstance(value, int | np.integer) and not isinstance(value, bool) and value >= 0:
        return int(value)
    title = f"{name} must be a whole number, zero or more, or None, not {short(value)}"
    raise usage("PCB440", title, help=f"leave {name} out, or give a number such as {name}=10_000")
