"""Sets and frozensets of the lane, with the methods of Python's, and views of dicts, which have some of them."""

from __future__ import annotations

from collections.abc import Iterable, Set
from typing import Any, ClassVar, Self

import jax
import jax.numpy as jnp

from pcbatch.data.aliasing import holds_same
from pcbatch.data.catalogue import Facts
from pcbatch.data.checks import limit, making, require
from pcbatch.data.container import Container, for_kind
from pcbatch.data.mappings import key_equality
from pcbatch.data.mappings import keys as lane_keys
from pcbatch.data.mappings.entries import Entries
from pcbatch.data.mappings.key_objects import as_objects
from pcbatch.data.mappings.python_hashes import has_hash
from pcbatch.data.mappings.set_order import ALONE, FIRST, python_order
from pcbatch.data.mappings.stored_table import ADDED, MIXED, REMOVED
from pcbatch.data.origins import number
from pcbatch.data.pytree_node import pytree_node
from pcbatch.data.rows import Rows
from pcbatch.data.sequences import list_order
from pcbatch.data.sequences.lane_list import LaneList, as_list
from pcbatch.data.values import Index, Value
from pcbatch.decisions import Cure, Decisions
from pcbatch.diagnostics.lane_words import type_name
from pcbatch.errors import Refusal

POP = "`s.pop()` of a set of several elements whose order is not known: write `x = min(s)`, then `s.remove(x)`"


@pytree_node("source", static="part")
class DictView(Container):
    """The keys, values or items of a dict of the lane.

    Attributes:
        source: the dict, which this is a view of.
        part: "keys", "values" or "items".
    """

    def __init__(self, source: Value, part: str) -> None:
        self.source, self.part = source, part
        self.parent = self.snapshot = source if isinstance(source, Container) else None

    def __repr__(self) -> str:
        return f"{self.part} of {self.source!r}"

    @property
    def length(self) -> Index:
        """The number of elements, as of `len`."""
        return self.source.length

    def as_list(self) -> LaneList:
        """Return the list of the elements."""
        made: LaneList = getattr(self.source, f"{self.part}_list")()
        return made

    def gone_over(self) -> LaneList:
        """Return the list of the elements; one of values shares the dict, which must not change meanwhile."""
        items = self.as_list()
        if self.part != "keys":
            items.parent = items.snapshot = self.source
        return items

    def contains(self, value: Value) -> Value:
        """Return `value in` the view."""
        if self.part == "keys":
            return self.source.contains(value)
        if self.part == "values":
            return self.as_list().contains(value)
        if not isinstance(value, tuple) or len(value) != 2 or self.source.table is None:
            return False
        found = self.source.table.find(lane_keys.hashable(value[0]))
        return number(found.present & list_order.equal(self.source._taken(found), value[1]))


def _of_copy(name: str, change: str) -> Value:
    """Make the method that gives a changed copy, by the name of the one that changes the set itself."""

    def method(self: LaneSet, *others: Value) -> LaneSet:
        new = self.copy()
        getattr(new, change)(*others)
        return new

    method.__name__, method.__doc__ = name, f"Return a copy of this set after `{change}`."
    return Facts(iterates=True)(method)


def _operator(name: str) -> Any:
    """Make the operator that is a method for sets, and none for other operands."""
    return lambda self, other: getattr(self, name)(other) if isinstance(other, SETS) else NotImplemented


def _reflected(name: str) -> Any:
    """Make the operator of a set of Python's own, or a view, with one of the lane: the left one says the kind."""

    def method(self: LaneSet, other: Value) -> Value:
        if not isinstance(other, SETS):
            return NotImplemented
        made: LaneSet = getattr(self, name)(other)
        kind = set_class(other)
        return made if type(made) is kind else kind.of_table(made)

    return method


def _in_place(shown: str, change: str) -> Value:
    """Make the operator that changes a set, by the name of the method that does so."""

    def method(self: LaneSet, other: Value) -> LaneSet:
        if not isinstance(other, SETS):
            raise TypeError(f"unsupported operand type(s) for {shown}: 'set' and '{type_name(other)}'")
        getattr(self, change)(other)
        return self

    return method


@for_kind(set)
@jax.tree_util.register_pytree_node_class
class LaneSet(Entries):
    """A mutable set of the lane."""

    python_name: ClassVar[str] = "set"

    @classmethod
    @making()
    def from_items(cls, items: Value = ()) -> Self:
        """Return the set of the elements of a list, a dict, an array or a Python iterable."""
        new = cls()
        new.update(items)
        return new

    @classmethod
    def known(cls, items: Set[Any]) -> Self:
        """Return the set of the elements of a Python set, whose own order is known while each has its place."""
        new = cls.from_items(list(items))
        if len(items) > ALONE or len({hash(item) % FIRST for item in items}) < len(items):
            new.history = MIXED
        return new

    @classmethod
    def of_table(cls, other: LaneSet) -> Self:
        """Return the set of this kind with the table of another set, which nothing else has."""
        return cls.tree_unflatten(other._static, (other.table, other.none))

    # One element.

    @Facts(changes=True, ambiguous=True, only_stores=True)
    def add(self, key: Value, /) -> None:
        """Add an element that may be there already."""
        self.store(key, None)

    @Facts(changes=True, only_drops=True)
    def discard(self, key: Value, /) -> None:
        """Remove an element if it is there."""
        self.drop(key)

    @Facts(changes=True, only_drops=True)
    def remove(self, key: Value, /) -> None:
        """Remove an element; raise KeyError if it is not there."""
        require(self.drop(key), "KeyError", *lane_keys.shown(key), argument=lambda: key)

    @Facts(changes=True, removes=True, only_drops=True)
    def pop(self) -> Value:
        """Remove the first element and return it; where the order is not known, a lane with several ends."""
        require(self.length > 0, "KeyError", "pop from an empty set")
        known = self.order_is_known
        limit(known or self.count < 2, POP)
        assert self.table is not None
        values = self.as_list() if known else self.keys_list()
        key = values.element(jnp.int32(0))
        self.drop(key)
        return key

    # All elements.

    def copy(self) -> Self:
        """Return a set of the same elements."""
        new = super().copy()
        new.history = ADDED if self.table is None else MIXED
        return new

    def unordered(self) -> LaneList:
        """Return the elements in no order that Python would know."""
        if self.table is None:
            return self.keys_list()
        key_equality.require_unchanged(self.table.keys, self.table.live)
        columns = as_objects(self.table.in_any_order(self.table.keys))
        made: LaneList = LaneList.tree_unflatten(self.key_origins, (columns, self.table.count))
        return holds_same(made, self)

    @property
    def order_is_known(self) -> bool:
        """Whether the order in which Python goes over the elements is known."""
        if self.table is None:
            return True
        return self.history != MIXED and has_hash(lane_keys.python_form(self.table.keys))

    def as_list(self) -> LaneList:
        """Return the elements in the order in which Python goes over them; refuses sets whose order is not known."""
        if self.table is None:
            return self.keys_list()
        if not self.order_is_known:
            raise Refusal(
                "PCB314",
                "the order of this set is not known",
                "it follows from Python's own table, which is made again for integers, and tuples of them, that were"
                " added one by one, and to which none was added after a removal",
                helps=("go over `sorted(s)`, whose order is known", "keep a dict with these keys: it has their order"),
                cures=Cure.ALONG | Cure.LOOP,
                wants=Decisions(ordered=True),
            )
        key_equality.require_unchanged(self.table.keys, self.table.live)
        keys = self.table.entries(self.table.keys)  # where none was removed: of its rows nothing is needed else
        columns, added, live = self.table.added() if self.history == REMOVED else (keys, self.table.count, True)
        order = python_order(lane_keys.python_form(columns), added, live)
        columns = as_objects(jax.tree.map(lambda leaf: leaf[order], columns))
        made: LaneList = LaneList.tree_unflatten(self.key_origins, (columns, self.table.count))
        return made

    @Facts(changes=True, ambiguous=True, only_stores=True, iterates=True, stepwise=True)
    def update(self, *others: Value) -> None:
        """Add the elements of other collections."""
        for other in others:
            if isinstance(other, Entries | DictView | set | frozenset | dict):
                self.history = MIXED  # Python makes room for all of them at once
            if isinstance(other, Entries):
                if other.table is not None:
                    self._store_list(other.keys_list(), None)
            elif isinstance(other, DictView):
                self._store_list(other.as_list(), None)
            elif isinstance(other, Iterable) and not isinstance(other, jax.Array | Rows):
                for key in other:
                    self.add(key)
            else:
                self._store_list(as_list(other), None)

    @Facts(changes=True, only_drops=True, iterates=True)
    def intersection_update(self, *others: Value) -> None:
        """Keep the elements that are in all other collections."""
        for other in others:
            self._keep(as_set(other), True)

    @Facts(changes=True, only_drops=True, iterates=True, stepwise=True)
    def difference_update(self, *others: Value) -> None:
        """Remove the elements of other collections."""
        for other in others:
            self._keep(as_set(other), False)

    @Facts(changes=True, iterates=True)
    def symmetric_difference_update(self, other: Value, /) -> None:
        """Keep the elements that are in this set or the other, but not in both."""
        other = as_set(other).copy()
        mine = self.copy()
        self._keep(other, False)
        other._keep(mine, False)
        self.update(other)

    def _keep(self, other: LaneSet, which: bool) -> None:
        if self.table is not None:
            found = self._found_in(other)
            self.table = self.table.kept(found if which else self.table.live & ~found)
            self.history = MIXED

    union, intersection = _of_copy("union", "update"), _of_copy("intersection", "intersection_update")
    difference = _of_copy("difference", "difference_update")
    symmetric_difference = _of_copy("symmetric_difference", "symmetric_difference_update")

    # Comparisons.

    @Facts(iterates=True)
    def issubset(self, other: Value, /) -> Value:
        """Return whether all elements are in another collection."""
        if self.table is None:
            return True
        return number(jnp.all(self._found_in(as_set(other)) | ~self.table.live))

    @Facts(iterates=True)
    def issuperset(self, other: Value, /) -> Value:
        """Return whether all elements of another collection are in this set."""
        return as_set(other).issubset(self)

    @Facts(iterates=True)
    def isdisjoint(self, other: Value, /) -> Value:
        """Return whether no element is in another collection."""
        if self.table is None:
            return True
        return number(jnp.logical_not(jnp.any(self._found_in(as_set(other)))))

    def __eq__(self, other: Value) -> Value:
        if not isinstance(other, SETS):
            return False
        other = as_set(other)
        return _and(self.issubset(other), self.count == other.count)

    def __ne__(self, other: Value) -> Value:
        return list_order.not_(self == other)

    __le__, __ge__ = _operator("issubset"), _operator("issuperset")

    def __lt__(self, other: Value) -> Value:
        if not isinstance(other, SETS):
            return NotImplemented
        other = as_set(other)
        return _and(self.issubset(other), self.count < other.count)

    def __gt__(self, other: Value) -> Value:
        return as_set(other) < self if isinstance(other, SETS) else NotImplemented

    # Operators.

    __or__, __and__ = _operator("union"), _operator("intersection")
    __sub__, __xor__ = _operator("difference"), _operator("symmetric_difference")

    def __rsub__(self, other: Value) -> Value:
        return as_set(other).difference(self) if isinstance(other, SETS) else NotImplemented

    __ror__, __rand__, __rxor__ = _reflected("union"), _reflected("intersection"), _reflected("symmetric_difference")

    __ior__, __iand__ = _in_place("|=", "update"), _in_place("&=", "intersection_update")
    __isub__, __ixor__ = _in_place("-=", "difference_update"), _in_place("^=", "symmetric_difference_update")


@for_kind(frozenset)
@jax.tree_util.register_pytree_node_class
class LaneFrozenSet(LaneSet):
    """A frozenset of the lane: user code finds no method that changes it, and its operators in place make a new one."""

    python_name: ClassVar[str] = "frozenset"
    __ior__, __iand__, __isub__, __ixor__ = LaneSet.__or__, LaneSet.__and__, LaneSet.__sub__, LaneSet.__xor__


SETS = (LaneSet, set, frozenset, DictView)
FROZEN = (LaneFrozenSet, frozenset)


def set_class(values: Value) -> type[LaneSet]:
    """Return the class of the lane for a set or frozenset of Python."""
    return LaneFrozenSet if isinstance(values, FROZEN) else LaneSet


def as_set(values: Value) -> LaneSet:
    """Return the set of the elements of a collection; a set itself."""
    return values if isinstance(values, LaneSet) else set_class(values).from_items(values)


def _and(a: Value, b: Value) -> Value:
    return b if a is True else number(jnp.logical_and(a, b))
