"""Lists and arrays in the fields of records made in lanes: what a primitive does to them.

Python's lists are objects: `xs = node.children` and the field are one list. In a lane `xs` is a copy of it. So
inference notes for each primitive which results hold objects of fields, which operands have become parts of fields, and
which fields it changes; the check of ownership refuses what would show the difference.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import jax
import numpy as np

from pcbatch.data.aliasing import Parts
from pcbatch.data.columns import put
from pcbatch.data.elements import join_origins, origins_of, prepare, unify
from pcbatch.data.stored import Stored, inner_parts, is_container, parts
from pcbatch.data.texts.text import Text
from pcbatch.data.values import Value
from pcbatch.errors import Refusal

FieldKey = tuple[int, int]  # the number of a class, and that of a field of it

ONE_LIST = "two records get one and the same list, and a change through one would be seen in the other"
ONE_LIST_HELP = "give each a list of its own: `Node(list(xs))`"


@dataclass(frozen=True, slots=True)
class HeapUse:
    """The reads, stores and changes of lists and arrays in fields of records that a primitive makes.

    Attributes:
        held: the results that are parts of fields, with the field; `own` if the result itself is one.
        stored: the operands that have become parts of fields, with the field.
        changed: the fields that are changed in place or assigned.
    """

    held: frozenset[tuple[int, bool, FieldKey]] = frozenset()
    stored: frozenset[tuple[int, FieldKey]] = frozenset()
    changed: frozenset[FieldKey] = frozenset()


NO_USE = HeapUse()


@dataclass(slots=True)
class HeapChanges:
    """The reads, stores and changes that were noted so far while a primitive is traced."""

    views: list[tuple[FieldKey, Value, Value]] = field(default_factory=list)  # a list that was read, and its state then
    arrays: set[FieldKey] = field(default_factory=set)  # fields of which an array was read
    values: list[tuple[FieldKey, Value]] = field(default_factory=list)  # lists and arrays that were stored
    changed: set[FieldKey] = field(default_factory=set)

    def read(self, place: FieldKey, value: Value) -> None:
        """Note a field that has been read."""
        for part in inner_parts(value):
            if isinstance(part, Text):
                continue
            if isinstance(part, Stored):
                if any(other == place for other, _ in self.values):
                    title = "a list of a record is read in the expression that has made it"
                    raise Refusal("PCB304", title, helps=("write two statements",))
                self.views.append((place, part, _state(part)))
            elif _has_axes(part):
                self.arrays.add(place)

    def stored(self, place: FieldKey, value: Value, *, new: bool = False) -> None:
        """Note a value that is stored in a field; `new` in a record that is made by this."""
        if not is_changeable(value):
            return
        self.values.append((place, value))
        if not new:
            self.changed.add(place)

    def use(self, results: Sequence[Value], operands: Sequence[Value]) -> HeapUse:
        """Return what has happened, at the end of the primitive."""
        changed = {place for place, view, state in self.views if _state(view) != state}
        stored: set[tuple[int, FieldKey]] = set()
        held: set[tuple[int, bool, FieldKey]] = set()
        seen: set[Any] = set()
        read = [Parts(view) for _, view, _ in self.views]
        of_fields = {key for found in read for key in (found.own | found.inner)}
        stored_parts = [Parts((value,)) for _, value in self.values]  # all alive, so that no identity comes again
        for (place, value), mine in zip(self.values, stored_parts, strict=True):
            keys = mine.own | mine.inner
            arrays = _arrays(value)
            if mine.repeated or keys & (seen | of_fields):
                raise Refusal("PCB304", ONE_LIST, helps=(ONE_LIST_HELP,))
            seen |= keys
            for k, operand in enumerate(operands):
                other = Parts(operand)
                if keys & (other.own | other.inner) or arrays & _arrays(operand):
                    stored.add((k, place))
            for k, result in enumerate(results):
                other = Parts(result)
                if keys & (other.own | other.inner) or arrays & _arrays(result):
                    held.add((k, bool(keys & other.own) or not is_container(result), place))
        for k, result in enumerate(results):
            other = Parts(result)
            for (place, _, _), mine in zip(self.views, read, strict=True):
                keys = mine.own | mine.inner
                if keys & other.own:
                    held.add((k, True, place))
                if keys & other.inner:
                    held.add((k, False, place))
            if self.arrays and _arrays(result):
                held |= {(k, own, place) for place in self.arrays for own in (True, False)}
        return HeapUse(frozenset(held), frozenset(stored), frozenset(self.changed | changed))


def _arrays(value: Value) -> set[int]:
    return {id(leaf) for leaf in jax.tree.leaves(value) if _has_axes(leaf)}


def _has_axes(value: Value) -> bool:
    return isinstance(value, jax.Array | np.ndarray) and value.ndim > 0


def _state(view: Value) -> tuple[int, ...]:
    """The identities of what a container consists of."""
    return tuple(id(leaf) for leaf in jax.tree.leaves(view._node))


def is_changeable(value: Value) -> bool:
    """Return whether a value that is stored in a field is, or holds, a list or an array, and not texts alone."""
    leaves = jax.tree.leaves(value, is_leaf=is_container)
    return any((is_container(leaf) and not isinstance(leaf, Text)) or _has_axes(leaf) for leaf in leaves)


def put_field(rows: Value, row: Value, place: int, value: Value) -> None:
    """Store a value in a part of one element of a list, whose elements are tuples; out of range drops it."""
    columns, value = rows._columns, prepare(value)
    counts = [len(parts(column)) for column in columns]
    first = sum(counts[:place])
    before, mine = rows.origins[:first], rows.origins[first : first + counts[place]]
    after = rows.origins[first + counts[place] :]
    origins = join_origins(columns[place], mine, value, origins_of(value))
    size = rows.capacity
    column, value = unify(columns[place], (size,), value, ())
    stored = jax.tree.map(lambda leaf, new: put(leaf, (row,), new), column, value)
    rows._columns = (*columns[:place], stored, *columns[place + 1 :])
    rows.origins = (*before, *origins, *after)
