"""What random programs are drawn from: bytes, one for each choice. And what is known while a function is drawn."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import TypeVar

T = TypeVar("T")

SMALL = 97.0  # what every variable stays below
COARSE = 0.25  # float variables are multiples of this
GLOBALS = {"G": 7, "H": -2}  # module-level numbers; a local may have the same name


@dataclass(frozen=True, slots=True)
class Expr:
    """An expression, a bound of its magnitude, and what it is a multiple of."""

    text: str
    bound: float = SMALL
    unit: float = 1.0


@dataclass(frozen=True, slots=True)
class Signature:
    """A batched function. `params`: name, kind, default or None; the last `keyword_only` of them are that."""

    name: str
    params: tuple[tuple[str, str, str | None], ...]
    keyword_only: int
    result: tuple[str, ...]
    style: str  # "leaf", "inline": calls nothing; "base": returns without fuel; "guard": every call tests the fuel

    @property
    def decorator(self) -> str:
        """What stands above it."""
        return "@pcbatch.inline" if self.style == "inline" else "@pcbatch.batch"


@dataclass(slots=True)
class Scope:
    """What the code at one point may read (`names`, by kind) and assign."""

    names: dict[str, list[str]]
    assignable: dict[str, list[str]]
    helpers: list[str] = field(default_factory=list)

    def inner(self) -> Scope:
        """A copy, for a block whose new names are not seen after it."""
        names = {kind: list(found) for kind, found in self.names.items()}
        return Scope(names, {kind: list(found) for kind, found in self.assignable.items()}, list(self.helpers))


class Tape:
    """Draws choices. Each takes a byte of the tape, whose zero is the simplest; after its end all are."""

    def __init__(self, tape: bytes) -> None:
        self.tape = tape
        self.position = 0
        self.functions: Sequence[Signature] = ()
        self.size = 17 if self.chance(3) else 3  # elements of every array
        self.effects = self.chance(4)  # may lanes print and fail?
        self.style, self.current = "leaf", ""
        self.calls = 0  # how many more calls this function may hold
        self.loop_depth = 0
        self.fresh = 0  # how many names this function has been given
        self.pure = 0  # inside something that stays plain Python: no control flow, no calls
        self.message = False  # inside a message, where nothing is assigned
        self.scope = Scope({}, {})

    def new_name(self, stem: str) -> str:
        """A name that this function has not yet."""
        self.fresh += 1
        return f"{stem}{self.fresh}"

    def below(self, n: int) -> int:
        """A number from 0 to n - 1."""
        byte = self.tape[self.position] if self.position < len(self.tape) else 0
        self.position += 1
        return byte % n

    def pick(self, choices: Sequence[T]) -> T:
        """One of some things."""
        return choices[self.below(len(choices))]

    def chance(self, one_in: int) -> bool:
        """True once in so many times."""
        return self.below(one_in) == one_in - 1
