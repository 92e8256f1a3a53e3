"""Abstract objects of a points-to analysis, which are united wherever one may be the other (Steensgaard, POPL 1996).

An object stands for all that a place of the program makes, or a variable holds: its elements are one object, but for
those of tuples and of dicts by name, which are told apart by their keys.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterator
from typing import Any, NamedTuple

Tree = Any  # a gast node


class Attribute(NamedTuple):
    """The key of the part that is an attribute of an object."""

    name: str


class Object:
    """The objects that some expressions may be.

    Attributes:
        sites: the expressions that make them.
        functions: the functions that they may be.
        classes: the classes of the user's whose objects they may be.
        outside: whether code that is not looked at may hold them, or have made them.
        absent: whether None may stand in their place.
        default: the expression that makes what a `defaultdict` lacks.
        fixed: whether a place makes it at which no box can be written.
        argument: whether it may be an argument of the program, or a part of one.
    """

    def __init__(self, *, outside: bool = False, absent: bool = False, argument: bool = False) -> None:
        self._into: Object | None = None
        self._parts: dict[Hashable, Object] | None = {}  # by their keys; None once all are one
        self._elements: Object | None = None
        self._key: Object | None = None
        self.sites: list[Tree] = []
        self.functions: list[Any] = []
        self.classes: set[type] = set()
        self.outside, self.absent = outside, absent
        self.default: Tree = None
        self.fixed = False
        self.argument = argument

    def found(self) -> Object:
        """Return the object that stands for all with which this one has been united."""
        while self._into is not None:
            self = self._into
        return self

    def elements(self) -> Object:
        """Return what any part of the object may be."""
        self = self.found()
        if self._elements is None:
            self._elements = Object(outside=self.outside, argument=self.argument)
        parts, self._parts = self._parts or {}, None
        for part in parts.values():
            self._elements.unite(part)
        return self.found()._inside()

    def _inside(self) -> Object:
        assert self._elements is not None
        return self._elements.found()

    def key(self) -> Object:
        """Return what the keys of a dict may be."""
        self = self.found()
        if self._key is None:
            self._key = Object(outside=self.outside, argument=self.argument)
        return self._key.found()

    def part(self, key: Hashable) -> Object:
        """Return what the part at a known key may be."""
        self = self.found()
        if self._parts is None or (self.argument and isinstance(key, int)):  # it may be a list
            return self.elements()
        if key not in self._parts:
            self._parts[key] = Object(outside=self.outside, argument=self.argument)
        return self._parts[key].found()

    def keys_known(self) -> tuple[Hashable, ...]:
        """Return the keys of the parts that are told apart; none once all are one."""
        return tuple(self.found()._parts or ())

    def unite(self, other: Object) -> None:
        """Have two objects count as one from now on, and what they hold as well."""
        pending = [(self, other)]
        while pending:
            one, two = (each.found() for each in pending.pop())
            if one is two:
                continue
            two._into = one
            one.sites += two.sites
            one.functions += two.functions
            one.classes |= two.classes
            one.absent |= two.absent
            one.fixed |= two.fixed
            one.default = one.default or two.default
            pending += one._united_parts(two)
            if one.outside or two.outside:
                one.leave()
            if one.argument or two.argument:
                one.become_argument()

    def _united_parts(self, other: Object) -> Iterator[tuple[Object, Object]]:
        pairs = [(self._key, other._key)]
        mine, theirs = self._parts, other._parts
        if mine is not None and theirs is not None:
            pairs += [(mine[key], theirs[key]) for key in mine.keys() & theirs.keys()]
            self._parts = {**theirs, **mine}
        else:
            self._parts = None
            inside = [*(mine or {}).values(), *(theirs or {}).values()]
            pairs.append((self._elements, other._elements))
            self._elements = self._elements or other._elements or Object(outside=self.outside, argument=self.argument)
            pairs += [(self._elements, part) for part in inside]
        self._key = self._key or other._key
        return ((one, two) for one, two in pairs if one is not None and two is not None)

    def leave(self) -> None:
        """Note that code which is not looked at may hold the object, and what it holds."""
        for one in self._all():
            one.outside = True

    def become_argument(self) -> None:
        """Note that the object may be an argument of the program, and what it holds a part of one."""
        for one in self._all():
            one.argument = True

    def _all(self) -> list[Object]:
        pending, found = [self], dict[Object, None]()
        while pending:
            one = pending.pop().found()
            if one not in found:
                found[one] = None
                pending += one.inside()
        return list(found)

    def inside(self) -> list[Object]:
        """Return what the object holds."""
        self = self.found()
        held = [*(self._parts or {}).values(), self._elements, self._key]
        return [one.found() for one in held if one is not None]
