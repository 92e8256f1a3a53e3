"""Options of a batched function: frozen, hashable, checked when they are made."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any

from pcbatch.diagnostics.byte_sizes import bytes_of
from pcbatch.diagnostics.diagnostic import Diagnostic
from pcbatch.diagnostics.short_repr import short
from pcbatch.errors import UsageError
from pcbatch.plan import Plan, check_one_of, check_positive

STRATEGIES = ("pc", "local")
OVERFLOW = ("wrap", "fail")
MATH_ERRORS = ("raise", "nan")
ON_FAILURE = ("warn", "error", "ignore")


@dataclass(frozen=True, slots=True)
class Numbers:
    """Whose numbers a function computes with, by two questions.

    Attributes:
        overflow: what becomes of an integer of Python that leaves the range of its dtype: "fail" (the lane ends with
            `Status.LIMIT`) or "wrap".
        math_errors: what a function of `math` does where Python's raises: "raise", or "nan" (NaN or infinity).
    """

    overflow: str
    math_errors: str

    def __post_init__(self) -> None:
        check_one_of("overflow", self.overflow, OVERFLOW)
        check_one_of("math_errors", self.math_errors, MATH_ERRORS)


NUMBERS: Mapping[str, Numbers] = MappingProxyType({"python": Numbers("fail", "raise"), "jax": Numbers("wrap", "nan")})
"""The choices of the option `numbers`; the other two mixtures can be said by names of earlier releases alone."""


@dataclass(frozen=True, slots=True)
class Options:
    """The options of a batched function; see `pcbatch.batch` for the meaning of each field.

    Raises UsageError (PCB401) for a value that an option cannot have.
    """

    in_axes: Any = 0
    out_axes: Any = 0
    static_argnames: tuple[str, ...] = ()
    donate_argnames: tuple[str, ...] = ()
    devices: Any = None
    stats: bool = False
    on_failure: str | None = None
    strategy: str = "pc"
    max_depth: int | None = None
    max_steps: int | None = None
    max_length: int | None = None
    max_tape: int | None = None
    max_memory: int | str | None = None
    checkpoints: int | None = None
    plan: Plan = Plan()
    numbers: str | Numbers = "python"

    def __post_init__(self) -> None:
        if self.on_failure is not None:
            checked_on_failure("on_failure", self.on_failure)
        check_one_of("strategy", self.strategy, STRATEGIES)
        for name in ("max_depth", "max_steps", "max_length", "max_tape", "checkpoints"):
            check_positive(name, getattr(self, name))
        _check_memory(self.max_memory)
        if not isinstance(self.plan, Plan):
            title = f"plan must be a `pcbatch.Plan`, not {short(self.plan)}"
            raise UsageError(Diagnostic("PCB401", title, helps=('write `plan=pcbatch.Plan(schedule="sweep")`',)))
        if not isinstance(self.numbers, Numbers):
            check_one_of("numbers", self.numbers, tuple(NUMBERS))

    @property
    def memory(self) -> int | None:
        """The option `max_memory` as a number of bytes; None for no limit."""
        return bytes_of(self.max_memory) if isinstance(self.max_memory, str) else self.max_memory


def _check_memory(limit: object) -> None:
    size = bytes_of(limit) if isinstance(limit, str) else limit
    if size is not None and isinstance(size, int) and not isinstance(size, bool) and size > 0:
        return
    if limit is not None:
        help = 'leave it out, or write `max_memory="8GB"`'
        title = f"max_memory must be a number of bytes, a text such as '8GB', or None, not {short(limit)}"
        raise UsageError(Diagnostic("PCB401", title, helps=(help,)))


def checked_on_failure(name: str, value: object) -> None:
    """Raise UsageError unless `value` is a choice of `on_failure`; `name` is its option or environment variable."""
    check_one_of(name, value, ON_FAILURE)


def checked_lanes(lanes: int | None) -> int | None:
    """Return a number of lanes, or None; raise UsageError (PCB401) unless it is a positive integer."""
    check_positive("lanes", lanes)
    return lanes
