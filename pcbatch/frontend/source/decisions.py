"""The decisions that only type inference can make for the front end; with each new one compiling starts again."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from types import CodeType

from pcbatch.diagnostics.diagnostic import Loc


@dataclass(frozen=True, slots=True)
class Decisions:
    """Facts that inference has found out about the user's source.

    Attributes:
        along: the code of helpers that are compiled as if they were decorated.
        expanded: places at which a comprehension, or a builtin that consumes an iterable, could not be traced; those
            around such a place become loops.
    """

    along: frozenset[CodeType] = frozenset()
    expanded: frozenset[Loc] = frozenset()

    def expands(self, span: Loc) -> bool:
        """Return whether a construct at this span becomes a loop."""
        return any(_inside(place, span) for place in self.expanded)


NONE = Decisions()


def _inside(place: Loc, span: Loc) -> bool:
    start, end = (span.line, span.col), (span.end_line, span.end_col)
    return place.file == span.file and start <= (place.line, place.col) and (place.end_line, place.end_col) <= end


def with_expanded(decisions: Decisions, places: Iterable[Loc]) -> Decisions:
    """Return the decisions with further places to expand."""
    return Decisions(decisions.along, decisions.expanded.union(places))
