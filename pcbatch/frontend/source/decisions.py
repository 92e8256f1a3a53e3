"""The decisions about the user's source that only type inference can make; with each new one compiling starts again."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from pcbatch.diagnostics.diagnostic import Loc


@dataclass(frozen=True, slots=True)
class Decisions:
    """Facts that inference has found out about the user's source.

    `expanded` are places that could not be traced: a comprehension around one of them, or a builtin that consumes an
    iterable there, becomes a loop. `made` are classes of the user's whose objects are records made in lanes. At the
    places `linked` a variable gets a part of another one, with which it is kept equal (see `frontend.build.links`); at
    those `in_place`, `x += ...` changes the object of `x`. The loops over what stands at the places `taken` go over
    an iterator that is kept.
    """

    expanded: frozenset[Loc] = frozenset()
    made: frozenset[Any] = frozenset()
    linked: frozenset[Loc] = frozenset()
    in_place: frozenset[Loc] = frozenset()
    taken: frozenset[Loc] = frozenset()

    def expands(self, span: Loc) -> bool:
        """Return whether a construct at this span becomes a loop."""
        return any(_inside(place, span) for place in self.expanded)


NONE = Decisions()


def _inside(place: Loc, span: Loc) -> bool:
    start, end = (span.line, span.col), (span.end_line, span.end_col)
    return place.file == span.file and start <= (place.line, place.col) and (place.end_line, place.end_col) <= end
