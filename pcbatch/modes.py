"""How a visit computes a block: for all lanes under a mask, for the few that wait, or in strips."""

from __future__ import annotations

from dataclasses import dataclass

from pcbatch.diagnostics.diagnostic import Diagnostic
from pcbatch.diagnostics.short_repr import short
from pcbatch.errors import UsageError


@dataclass(frozen=True, slots=True)
class Dense:
    """All lanes under a mask; a block that lanes may go from to itself is repeated while most of them do, `spins` times
    between two looks at how many that are."""

    spins: int = 0

    def __str__(self) -> str:
        return "dense, repeated" if self.spins else "dense"


@dataclass(frozen=True, slots=True)
class Few:
    """The first `width` waiting lanes, again until none waits."""

    width: int

    def __post_init__(self) -> None:
        _check(self.width)

    def __str__(self) -> str:
        return f"{self.width} lanes at a time"


@dataclass(frozen=True, slots=True)
class Strips:
    """Dense when more than half of the lanes wait, else `width` lanes at a time, each lane once."""

    width: int

    def __post_init__(self) -> None:
        _check(self.width)

    def __str__(self) -> str:
        return f"dense, or strips of {self.width}"


Mode = Dense | Few | Strips


def _check(width: object) -> None:
    if not isinstance(width, int) or isinstance(width, bool) or width < 1:
        raise UsageError(
            Diagnostic(
                "PCB401", f"a width must be a positive integer, not {short(width)}", helps=("write `pcbatch.Few(32)`",)
            )
        )
