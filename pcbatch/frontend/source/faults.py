"""Collecting what is wrong with a function, so that people see all of it at once."""

from __future__ import annotations

from pcbatch.diagnostics.diagnostic import Diagnostic, Label, Loc
from pcbatch.frontend.source.locate import Source
from pcbatch.frontend.source.tree import Node


class Faults:
    """The findings about one function, in the order of its source."""

    def __init__(self, source: Source) -> None:
        self._source = source
        self._found: list[Diagnostic] = []

    def add(
        self,
        code: str,
        title: str,
        place: Node | Loc,
        label: str = "",
        *,
        helps: tuple[str, ...] = (),
        notes: tuple[str, ...] = (),
        cause: tuple[Node | Loc, str] | None = None,
    ) -> None:
        """Record that the code at `place` is wrong; `cause` is a second place that explains it."""
        secondary = () if cause is None else (Label(self._loc(cause[0]), cause[1]),)
        primary = Label(self._loc(place), label)
        self._found.append(Diagnostic(code, title, primary, secondary, notes, helps))

    def _loc(self, place: Node | Loc) -> Loc:
        return place if isinstance(place, Loc) else self._source.loc(place)

    def inside(self, node: Node) -> bool:
        """Is something wrong with a part of this node?"""
        whole = self._source.loc(node)
        start, end = (whole.line, whole.col), (whole.end_line, whole.end_col)
        places = [found.primary.loc for found in self._found if found.primary is not None]
        return any(start <= (loc.line, loc.col) and (loc.end_line, loc.end_col) <= end for loc in places)

    @property
    def found(self) -> tuple[Diagnostic, ...]:
        """All findings, by place; the same finding twice counts once."""
        unique = dict.fromkeys(self._found)
        return tuple(sorted(unique, key=lambda d: (d.primary.loc, d.code) if d.primary else ()))
