"""The collection of all faults of a function, so that users see them at once."""

from __future__ import annotations

from pcbatch.diagnostics.diagnostic import Diagnostic, Label, Loc
from pcbatch.frontend.source.locate import Source
from pcbatch.frontend.source.tree import Node


class Faults:
    """The diagnostics of one function, in the order of its source."""

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
        """Record a diagnostic about the code at `place`; `cause` is a second span that explains it, with a label."""
        secondary = () if cause is None else (Label(self._loc(cause[0]), cause[1]),)
        primary = Label(self._loc(place), label)
        self._found.append(Diagnostic(code, title, primary, secondary, notes, helps))

    def _loc(self, place: Node | Loc) -> Loc:
        return place if isinstance(place, Loc) else self._source.loc(place)

    def include(self, other: Faults) -> None:
        """Record what was found in another function that stands in this one."""
        self._found += other._found

    def inside(self, node: Node) -> bool:
        """Whether a diagnostic points to a part of this node."""
        whole = self._source.loc(node)
        start, end = (whole.line, whole.col), (whole.end_line, whole.end_col)
        spans = [diagnostic.primary.loc for diagnostic in self._found if diagnostic.primary is not None]
        return any(start <= (loc.line, loc.col) and (loc.end_line, loc.end_col) <= end for loc in spans)

    @property
    def found(self) -> tuple[Diagnostic, ...]:
        """All diagnostics in the order of their spans, each once."""
        unique = dict.fromkeys(self._found)
        return tuple(sorted(unique, key=lambda d: (d.primary.loc, d.code) if d.primary else ()))
