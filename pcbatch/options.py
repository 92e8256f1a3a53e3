"""Options of a batched function: frozen, hashable, checked when they are made."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from pcbatch.diagnostics import Diagnostic
from pcbatch.errors import UsageError

STRATEGIES = ("pc", "local")
SCHEDULES = ("auto", "earliest", "largest", "sweep", "drain")
EMITTERS = ("auto", "guard", "port", "mask")


@dataclass(frozen=True, slots=True)
class Options:
    """How a function is batched and run; see `pcbatch.batch` for the meaning of each field."""

    in_axes: Any = 0
    static_argnames: tuple[str, ...] = ()
    strategy: str = "pc"
    schedule: str = "auto"
    emitter: str = "auto"
    max_depth: int | None = None
    max_steps: int | None = None
    devices: Any = None
    stats: bool = False

    def __post_init__(self) -> None:
        _one_of("strategy", self.strategy, STRATEGIES)
        _one_of("schedule", self.schedule, SCHEDULES)
        _one_of("emitter", self.emitter, EMITTERS)
        _positive("max_depth", self.max_depth)
        _positive("max_steps", self.max_steps)


def _one_of(name: str, value: object, choices: tuple[str, ...]) -> None:
    if value not in choices:
        raise UsageError(
            Diagnostic(
                "PCB401",
                f"unknown {name} {value!r}",
                helps=(f"choose one of {', '.join(map(repr, choices))}",),
            )
        )


def _positive(name: str, value: object) -> None:
    if value is not None and (not isinstance(value, int) or isinstance(value, bool) or value < 1):
        raise UsageError(
            Diagnostic(
                "PCB401",
                f"{name} must be a positive integer or None, not {value!r}",
                helps=(f"leave {name} out, or give a number such as {name}=64",),
            )
        )
