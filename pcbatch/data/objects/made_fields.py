"""Lists and arrays in the fields of records made in lanes: what a primitive does to them.

Python's lists are objects: `xs = node.children` and the field are one list. In a lane `xs` is a copy of it. So
inference notes for each primitive which results hold objects of fields, which operands have become parts of fields, and
which fields it changes; the check of ownership refuses what would show the difference.
"""

from __future__ import annotations

import contextlib
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass, field

import jax
import jax.numpy as jnp
import numpy as np

from pcbatch.data.aliasing import Key, Parts, note_stored, with_origins
from pcbatch.data.columns import put
from pcbatch.data.elements import as_element, join_origins, origins_of, unify
from pcbatch.data.rows import Rows
from pcbatch.data.stored import Stored, inner_parts, is_container, parts
from pcbatch.data.texts.text import Text
from pcbatch.data.values import Value
from pcbatch.decisions import Cure
from pcbatch.errors import Refusal

FieldKey = tuple[int, int]  # the number of a class, and that of a field of it
FieldLevel = tuple[FieldKey, bool]  # a field, and whether it is the object in it itself, or those inside that

ONE_LIST = "two records get one and the same list, and a change through one would be seen in the other"
ONE_LIST_HELP = "give each a list of its own: `Node(list(xs))`"
ELEMENT = "a list becomes an element of a list or a dict of a record where it is traced"
ELEMENT_HELP = "store it in a statement of its own, or in a function that is called there"


@dataclass(frozen=True, slots=True)
class HeapUse:
    """The reads, stores and changes of lists and arrays in fields of records that a primitive makes.

    Attributes:
        held: the results, by number and level, that are objects of a field, or parts of one, at a level of that.
        stored: likewise the operands that have become objects of a field; those of which a field has got a part as an
            element stand with the inner level.
        shared: the levels of fields whose objects have become elements of an object of a field as well.
        changed: the levels of fields at which an object was changed in place.
    """

    held: frozenset[tuple[int, bool, FieldLevel]] = frozenset()
    stored: frozenset[tuple[int, bool, FieldLevel]] = frozenset()
    shared: frozenset[tuple[FieldKey, FieldLevel]] = frozenset()
    changed: frozenset[FieldLevel] = frozenset()

    @property
    def written(self) -> frozenset[FieldLevel]:
        """The levels of fields at which an object was changed, or has become another one."""
        return self.changed | {(level[0], True) for _, _, level in self.stored}


NO_USE = HeapUse()
BOTH = (True, False)
Levels = tuple[tuple[bool, set[Key]], ...]


@dataclass(slots=True)
class _View:
    """A list that was read from a field, and its state then, or after the changes that have been noted."""

    place: FieldKey
    part: Value
    state: tuple[int, ...]
    objects: Levels
    stored: int = 0  # the number of values that an operation of its own has made elements of it


@dataclass(slots=True)
class HeapChanges:
    """The reads, stores and changes that were noted so far while a primitive is traced."""

    views: list[_View] = field(default_factory=list)  # lists that were read
    arrays: set[FieldKey] = field(default_factory=set)  # fields of which an array was read
    values: list[tuple[FieldKey, Value]] = field(default_factory=list)  # lists and arrays that were stored
    changed: set[FieldLevel] = field(default_factory=set)
    levels: Collection[bool] = BOTH  # at which a field changes that is changed now

    def read(self, place: FieldKey, value: Value) -> None:
        """Note a field that has been read."""
        for part in inner_parts(value):
            if isinstance(part, Text):
                continue
            if isinstance(part, Stored):
                if any(other == place for other, _ in self.values):
                    title = "a list of a record is read in the expression that has made it"
                    raise Refusal("PCB304", title, helps=("write two statements",))
                self.views.append(_View(place, part, _state(part), _of_view(part)))
            elif _has_axes(part):
                self.arrays.add(place)

    def stored(self, place: FieldKey, value: Value) -> None:
        """Note a value that is stored in a field."""
        if is_changeable(value):
            self.values.append((place, value))
            note_stored(value)

    @contextlib.contextmanager
    def changing(self, places: Collection[FieldKey], levels: Collection[bool]) -> Iterator[None]:
        """Note what changes in some fields meanwhile as changes at these levels."""
        self._settle()
        around, self.levels = self.levels, levels
        try:
            yield
            self._settle(places)
            for view in self.views:
                view.stored = len(view.part.held) if view.place in places else view.stored
        finally:
            self.levels = around

    def back(self, place: FieldKey) -> None:
        """Note a field that has changed in place, and got what it is by now."""
        self.changed |= {(place, level) for level in self.levels}

    def _settle(self, places: Collection[FieldKey] | None = None) -> None:
        """Note what has changed since this was called last, in some fields or all of them."""
        for view in self.views:
            now = _state(view.part)
            if now != view.state and (places is None or view.place in places):
                view.state = now
                self.back(view.place)

    def use(self, results: Sequence[Value], operands: Sequence[Value]) -> HeapUse:
        """Return what has happened, at the end of the primitive."""
        self._settle()
        if any(len(view.part.held) > view.stored for view in self.views):  # either may have changed since
            raise Refusal("PCB304", ELEMENT, helps=(ELEMENT_HELP,), cures=Cure.ALONG | Cure.LOOP)
        values = [(place, Parts((value,)), value) for place, value in self.values]  # alive: no identity comes again
        seen = set[Key]().union(*(keys for view in self.views for _, keys in view.objects))
        given, made = list(map(Parts, operands)), list(map(Parts, results))
        stored: set[tuple[int, bool, FieldLevel]] = set()
        held: set[tuple[int, bool, FieldLevel]] = set()
        for place, mine, value in values:
            keys = mine.own | mine.inner
            if _is_flat(value):  # of another list it has numbers and texts alone
                keys = {key for key in keys if key[0] == "object"}
            if mine.repeated or keys & seen:
                raise Refusal("PCB304", ONE_LIST, helps=(ONE_LIST_HELP,))
            seen |= keys
            own = Parts(value)
            levels, arrays = ((True, own.own), (False, own.inner)), _arrays(value)
            for others, places, out in ((given, operands, stored), (made, results, held)):
                out |= _tied(others, place, levels)
                same = [k for k, other in enumerate(places) if arrays & _arrays(other)]
                out |= {(k, level, (place, inside)) for k in same for level in BOTH for inside in BOTH}
        for view in self.views:
            held |= _tied(made, view.place, view.objects)
        for k, result in enumerate(results):
            if self.arrays and _arrays(result):
                held |= {(k, own, (place, level)) for place in self.arrays for own in BOTH for level in BOTH}
        shared: set[tuple[FieldKey, FieldLevel]] = set()
        for view in self.views:
            for keys in map(_of_element, view.part.held):
                stored |= _tied(given, view.place, ((False, keys),))
                shared |= {
                    (view.place, (other.place, level))
                    for other in self.views
                    for level, theirs in other.objects
                    if keys & theirs
                }
        return HeapUse(frozenset(held), frozenset(stored), frozenset(shared), frozenset(self.changed))


def _of_view(view: Value) -> Levels:
    """The objects of a list that is read from a field, by level, without those that all fields of the class lie in."""
    around = () if view.parent is None else tuple(with_origins(view.parent))
    found = Parts(view, frozenset(map(id, around)))
    apart = {("inside", id(one)) for one in around}
    return (True, found.own - apart), (False, found.inner - apart)


def _of_element(value: Value) -> set[Key]:
    """The objects of a value that has become an element of a list of a field: the value itself, and those inside."""
    found = Parts(value)
    inside = jax.tree.leaves(value, is_leaf=lambda part: part is not value and is_container(part))
    deep = not is_container(value) or any(is_container(part) or jnp.ndim(part) > 1 for part in inside)
    return found.own | found.inner if deep else found.own


def _is_flat(value: Value) -> bool:
    """Whether a value is a list without objects among its elements."""
    inside = jax.tree.leaves(value, is_leaf=lambda part: part is not value and is_container(part))
    texts_left_out = (part for part in inside if not isinstance(part, Text))
    return isinstance(value, Rows) and not any(is_container(part) or jnp.ndim(part) > 1 for part in texts_left_out)


def _tied(others: Sequence[Parts], place: FieldKey, levels: Levels) -> set[tuple[int, bool, FieldLevel]]:
    """The values that have objects of a field, by number and level, with the level of the field."""
    return {
        (k, own, (place, level))
        for k, other in enumerate(others)
        for own, mine in ((True, other.own), (False, other.inner))
        for level, keys in levels
        if keys & mine
    }


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
    columns, value = rows._columns, as_element(value)
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
