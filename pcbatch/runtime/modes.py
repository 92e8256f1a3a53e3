"""How a visit computes a block: for all lanes under a mask, for the few that wait, or in strips."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Dense:
    """All lanes under a mask; a block that jumps to itself goes round while most of its lanes do (`spins`)."""

    spins: bool = False

    def __str__(self) -> str:
        return "dense, repeated" if self.spins else "dense"


@dataclass(frozen=True, slots=True)
class Few:
    """The first `width` waiting lanes, again until none waits."""

    width: int

    def __str__(self) -> str:
        return f"{self.width} lanes at a time"


@dataclass(frozen=True, slots=True)
class Strips:
    """Dense when more than half of the lanes wait, else `width` lanes at a time, each lane once."""

    width: int

    def __str__(self) -> str:
        return f"dense, or strips of {self.width}"


Mode = Dense | Few | Strips
