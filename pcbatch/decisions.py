"""Why a compilation starts again: what would cure a refusal, and what has been decided about the user's source.

Tracing and the front end find out what only types, or only the whole program, can tell: that a helper branches on
values of a lane, that a comprehension has to be a loop. They raise `errors.Restart`, or a `Refusal` that says what
would cure it, from which `compiler/wants.py` makes one; `compiler/typed_program.py` starts again with what is wanted.
Sets of decisions only grow, so this ends. Beside it, only containers that are full start a compilation again
(`data/capacity.py`): their capacity is a decision about a call, and not about the source.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from enum import Flag, auto
from typing import Any

from pcbatch.diagnostics.diagnostic import Loc

CodeKey = tuple[str, int, str]
"""The place of a function: file, first line and name; copies of its code have the same."""


def key_of_library(name: str) -> CodeKey:
    """Return what stands for the place of a function of `itertools`, which is no code of the user's."""
    return ("itertools", 0, name)


class Cure(Flag):
    """Other ways to build an operation that is refused: in one of them it may have a meaning in a lane."""

    NONE = 0
    ALONG = auto()
    """The functions of the user's that it calls are compiled along."""
    LOOP = auto()
    """A comprehension around it, or a builtin that consumes an iterable there, becomes a loop."""
    METHODS = auto()
    """The calls of the user's methods that give elements are written out."""
    ITERATOR = auto()
    """The elements of an iterator that is kept are taken one by one."""
    COMPARE = auto()
    """Elements are put in an order one comparison after the other, each by a method of the user's."""
    STORE = auto()
    """What the read of an element of a `defaultdict` lacks is stored."""


@dataclass(frozen=True, slots=True)
class Reason:
    """The reason for which a function is compiled along: the name, the call that needs it, and why in words."""

    name: str
    place: str  # file and line of its definition
    call: Loc | None
    why: str
    file: str = ""
    lines: tuple[int, int] = (0, 0)

    def holds(self, loc: Loc) -> bool:
        """Whether a span is in this function."""
        return loc.file == self.file and self.lines[0] <= loc.line <= self.lines[1]

    def __str__(self) -> str:
        return f"`{self.name}` ({self.place}): {self.why}"


@dataclass(frozen=True, slots=True)
class Decisions:
    """The decisions about the user's source, made or wanted: all that a compilation starts again for.

    Attributes:
        helpers: functions without a decorator that are compiled along, and why.
        copied: those of them whose calls are replaced by copies, as each call has types of its own.
        changed: variables around a nested function that it changes in place.
        made: classes of the user's whose objects are records made in lanes.
        tables: tables of packed objects of which each lane gets a copy; the arguments of the call are made anew.
        expanded: places that could not be traced: a comprehension around one of them, or a builtin that consumes an
            iterable there, becomes a loop.
        taken: the loops over what stands there go over an iterator that is kept.
        asked: elements are taken there of an object of the user's.
        compared: elements are put in an order there by a method of the user's, one comparison after the other.
        stored: in the code there, reading an element stores what a `defaultdict` lacks.
        linked: a variable gets a part of another one there, with which it is kept equal (`frontend/build/links.py`).
        in_place: `x += ...` there changes the object of `x`.
        boxed: the objects that change there are records of a lane, as they have several names, and so many around them.
        forgetful: cached functions whose results lanes do not keep, as their arguments or results cannot be in a dict.
        functions: the classes of functions that are values of a lane, and their base, if any may be one
            (`frontend/source/rewrites/function_values.py`). They stand in the order in which they were found, which a
            set of classes would take from addresses: what is compiled follows that order.
        kept: generator functions whose generators are kept, in variables or parts of objects.
        streams: the classes whose objects stand for such generators, in order for the same reason.
        unpacked: `*values` gives so many arguments there, of a call of a function with optional parameters.
        rolled: the loop over what stands there stays a loop, as its body may change how many elements there are, or
            copies of it would make most of the program.
        copies: the loop there is copied however large it is, as something in it asks for numbers that are known.
        ordered: the order of a set is asked for, so that sets which are made of sets are made in the order of these.
        displays: what tuples displays make is noted.
        tuples: the classes of the tuples of displays that are records of a lane, by the places of the displays.
    """

    helpers: Mapping[CodeKey, Reason] = field(default_factory=dict)
    copied: frozenset[CodeKey] = frozenset()
    changed: frozenset[tuple[CodeKey, str]] = frozenset()
    made: frozenset[Any] = frozenset()
    tables: frozenset[int] = frozenset()
    expanded: frozenset[Loc] = frozenset()
    taken: frozenset[Loc] = frozenset()
    asked: frozenset[Loc] = frozenset()
    compared: frozenset[Loc] = frozenset()
    stored: frozenset[Loc] = frozenset()
    linked: frozenset[Loc] = frozenset()
    in_place: frozenset[Loc] = frozenset()
    boxed: frozenset[tuple[Loc, int]] = frozenset()
    forgetful: frozenset[CodeKey] = frozenset()
    kept: frozenset[CodeKey] = frozenset()
    streams: Mapping[type, None] = field(default_factory=dict)
    unpacked: frozenset[tuple[Loc, int]] = frozenset()
    rolled: frozenset[Loc] = frozenset()
    copies: frozenset[Loc] = frozenset()
    functions: Mapping[Any, None] = field(default_factory=dict)
    ordered: bool = False
    displays: bool = False
    tuples: Mapping[str, Any] = field(default_factory=dict)

    def __or__(self, more: Decisions) -> Decisions:
        return Decisions(*(getattr(self, part.name) | getattr(more, part.name) for part in fields(self)))

    def expands(self, span: Loc) -> bool:
        """Return whether a construct at this span becomes a loop."""
        return any(_inside(place, span) for place in self.expanded)

    def stores(self, span: Loc) -> bool:
        """Return whether reading an element at this span may store it."""
        return any(_inside(span, place) for place in self.stored)


NONE = Decisions()


def _inside(place: Loc, span: Loc) -> bool:
    start, end = (span.line, span.col), (span.end_line, span.end_col)
    return place.file == span.file and start <= (place.line, place.col) and (place.end_line, place.end_col) <= end
