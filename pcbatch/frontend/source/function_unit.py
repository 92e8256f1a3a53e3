"""The facts about one user function that every stage of the front end asks for, and the collection of its faults."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from types import CodeType, FunctionType

import gast

from pcbatch.decisions import Decisions
from pcbatch.diagnostics.diagnostic import Diagnostic, Label, Loc
from pcbatch.frontend.source.callee import BatchedTest, Statics, Target
from pcbatch.frontend.source.helpers import Helpers
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


@dataclass(frozen=True, slots=True)
class Unit:
    """The facts about one function to compile.

    `bound` are all local names with the nodes that bind them; `variables` are those with a value per lane; `nested` are
    the functions defined inside (`def` or `name = lambda`), which have no value at run time: each use is inlined in the
    primitive that uses it. `statics` are parameters that are never assigned and whose object is known: a function, a
    string, `self`. `names` are all identifiers that occur, so that names of temporaries can avoid them. `batched` gives
    the target of a call of a batched object, None for other objects.

    `lifted` are nested functions that are functions of the program, `definitions` the nodes of all functions that are
    defined in the body. `params` end with variables of functions around this one (see `rewrites.nested`); `returned`
    are those that are further results, as this one assigns or changes them. `is_entry`: the function is the one that a
    batch runs; `generates`: it is a generator whose body stands in another function. `shape` gives the number of
    arguments in `*args` ("*") and the names in `**kwargs` ("**"), where they are known. `classes` are those of the user
    whose objects the function may meet, by name; `imports` has the objects of names that an `import` in the body binds,
    and of those that only the compiler gives to classes.
    """

    fn: FunctionType
    source: Source
    node: Node
    in_class: bool
    params: tuple[str, ...]
    bound: Mapping[str, tuple[Node, ...]]
    variables: frozenset[str]
    nested: Mapping[str, Node]
    names: frozenset[str]
    batched: BatchedTest
    statics: Statics
    helpers: Helpers
    lifted: Mapping[str, Target] = field(default_factory=dict)
    definitions: Mapping[str, Node] = field(default_factory=dict)
    returned: tuple[str, ...] = ()
    is_entry: bool = False
    generates: bool = False
    shape: Mapping[str, str] = field(default_factory=dict)
    imports: Mapping[str, object] = field(default_factory=dict)
    classes: Mapping[str, type] = field(default_factory=dict)
    passed: dict[str, Target] = field(default_factory=dict, compare=False)  # functions given to others, as targets
    changing: dict[str, bool] = field(default_factory=dict, compare=False)  # names of methods: may they change objects

    @property
    def decisions(self) -> Decisions:
        """The decisions about the user's source."""
        return self.helpers.decisions

    def want(self, code: CodeType | None, at: Node, why: str) -> bool:
        """Ask for a function to be compiled along, for a node; False if it cannot be, or is already."""
        return code is not None and self.helpers.want(code, self.source.loc(at), why)

    def unpacked(self, values: Node, least: int) -> int:
        """The number of arguments that `*values` gives, as far as it has been found: at least so many."""
        return max((count for loc, count in self.decisions.unpacked if loc == self.source.loc(values)), default=least)

    @property
    def header(self) -> Loc:
        """The span of `def name`, or of a whole lambda."""
        return self.source.header(self.node)

    @property
    def body(self) -> list[Node]:
        """The statements; a lambda has one, the return of its expression."""
        if isinstance(self.node, gast.Lambda):
            return [gast.copy_location(gast.Return(value=self.node.body), self.node.body)]
        statements: list[Node] = self.node.body
        return statements
