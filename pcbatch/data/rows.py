"""The data of the sequences of the lane: columns of elements, and a length."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from pcbatch.data.aliasing import note_copy
from pcbatch.data.capacity import capacity, inner, records
from pcbatch.data.checks import CAPACITY, INNER, going_on, require_room
from pcbatch.data.columns import Shape, leaf_at, padded, put, room
from pcbatch.data.container import class_of
from pcbatch.data.elements import as_element, blank, join_origins, kept, stacked, unify
from pcbatch.data.mappings.ordered_keys import plain
from pcbatch.data.optional import Optional
from pcbatch.data.origins import Origin, note
from pcbatch.data.stored import Stored, UnlikeError, is_part, is_stored, parts
from pcbatch.data.values import Column, Columns, Index, Value


class Rows(Stored):
    """The data of a list: columns, length and origins; a view of a list in another list has those of its place.

    Attributes:
        origins: by leaf of the element, whether its scalars are numbers of Python; containers in it count as one leaf.
        held: the mutable objects that have become elements of the list while this primitive is traced.
        source: columns, a list that they are made of, and the place there of an index; one element is read there.
    """

    __slots__ = ("_columns", "_length", "_node", "held", "origins", "place", "source")

    def __init__(self, columns: Columns, length: Index, origins: tuple[Origin, ...]) -> None:
        self._columns, self._length, self.origins = columns, length, origins
        self._node: Rows = self
        self.place: tuple[Any, ...] = ()
        self.held: tuple[Any, ...] = ()
        self.source: tuple[Any, Rows, Callable[[Any], Any]] | None = None

    def view(self, place: tuple[Index, ...], parent: Value) -> Value:
        """Return the list at indices of the containers around this one; what is done to it is done to this one."""
        new = object.__new__(type(self))
        Rows.__init__(new, None, None, self.origins)
        new._node, new.place, new.parent = self, place, parent
        return new

    def unified(self, lead: Shape, other: Value, other_lead: Shape) -> tuple[Value, Value]:
        """Return this list and another one with the type that covers both."""
        if type(self) is not type(other):
            raise UnlikeError(self, other)
        a, b = self, other
        sizes = [room(rows.columns, len(axes)) for rows, axes in ((a, lead), (b, other_lead))]
        size = max((size for size in sizes if size is not None), default=0)
        a, b = (rows if here in (None, size) else rows.straight() for rows, here in zip((a, b), sizes, strict=True))
        a_columns, b_columns = padded(a.columns, len(lead), size), padded(b.columns, len(other_lead), size)
        origins = join_origins(a.columns, a.origins, b.columns, b.origins)
        a_columns, b_columns = unify(a_columns, (*lead, size), b_columns, (*other_lead, size))
        a_state, b_state = (jax.tree.map(_narrowed, rows.state) for rows in (a, b))
        return a.with_data(a_columns, a_state, origins), b.with_data(b_columns, b_state, origins)

    def beside(self, value: Value, lead: Shape) -> Value:
        """Return a known list or text of the kind of this one as one of the lane; other values as they are."""
        return self.known(value) if class_of(value) is type(self) else value

    def blanked(self, lead: Shape, new: Shape) -> Value:
        """Return empty lists of this type with another lead."""
        size = room(self.columns, len(lead))
        inner = self.columns if size is None else blank(self.columns, (*lead, size), (*new, size))
        return self.with_data(inner, self.no_state(lead, new), self.origins)

    def no_state(self, lead: Shape, new: Shape) -> Value:
        """Return the state of empty lists."""
        return jnp.zeros(new, np.int32) if new else 0

    def _start(self, of: str = "") -> int:
        """The number of elements that a container that gets its first one has room for; `of`: records of a class."""
        return records(of) if of else (self.lead and inner()) or capacity()

    def _require_room(self, needed: Index, most: int) -> None:
        require_room(needed, most, INNER if self.lead else CAPACITY)

    def cut(self) -> Value:
        """Return the container with the room of one inside of another."""
        return self.first_rows(inner(), INNER)

    def first_rows(self, most: int, kind: str) -> Value:
        """Return the list with room for `most` elements, 0 for as many as it has; a lane with more of them stops."""
        size, n = room(self.columns, 0), self.length
        most = max(most, n) if isinstance(n, int) else most
        if not most or size is None or size <= most:
            return self
        require_room(n, most, kind)
        return self.with_data(jax.tree.map(lambda leaf: leaf[:most], self.columns), n, self.origins)

    def straight(self) -> Value:
        """Return the list with its elements from place 0 on, so that it may be given more room."""
        return self

    def elements_in(self, values: Value) -> tuple[Value, ...]:
        """Return the mutable objects that a list or a Python iterable has for elements, or in them."""
        if not isinstance(values, Rows):
            return tuple(values) if isinstance(values, list | tuple) else ()
        views = (part.view((*values.place, 0), values) for part in parts(values.node._columns) if is_stored(part))
        return (*values.held, *views)

    @property
    def columns(self) -> Columns:
        """The columns; those of a view are read from the list around it."""
        node = self.node
        return node._columns if node is self else jax.tree.map(lambda leaf: leaf_at(leaf, self.place), node._columns)

    @columns.setter
    def columns(self, columns: Columns) -> None:
        if self._node is self:
            self._columns = kept(self._columns, columns, (room(columns, 0) or 0,))
            return
        node, lead = self.node, self.lead
        whole, row = unify(node, lead, self.with_data(columns, 0, self.origins), ())
        node._columns, node.origins = whole._columns, whole.origins
        node._columns = jax.tree.map(lambda leaf, new: put(leaf, self.place, new), node._columns, row._columns)

    @property
    def lead(self) -> Shape:
        """The axes of the lists around a view; none for a list that is none."""
        return () if self._node is self else tuple(jnp.shape(self.node._length))

    @property
    def length(self) -> Index:
        """The number of elements: int32[], or an int where it is known while compiling."""
        return self._length if self._node is self else leaf_at(self.node._length, self.place)

    @length.setter
    def length(self, length: Index) -> None:
        if self._node is self:
            self._length = length if (here := going_on()) is True else jnp.where(here, length, self._length)
        else:
            self.node._length = put(self.node._length, self.place, length)

    @property
    def state(self) -> Value:
        """The length, with what else there is beside the columns."""
        return self.length

    @property
    def capacity(self) -> int:
        """The number of elements that there is room for."""
        size = room(self.node._columns, len(self.lead))
        if size is not None:
            return size
        return max(capacity(), self._length if isinstance(self._length, int) else 0)

    def __iter__(self) -> Iterator[Value]:
        return iter([self.element(k) for k in range(len(self))])

    def tree_flatten(self) -> tuple[tuple[Any, Any], tuple[Origin, ...]]:
        """Return columns and length, and the origins as static data."""
        return (self.columns, self.state), self.origins

    @classmethod
    def tree_unflatten(cls, origins: tuple[Origin, ...], children: Sequence[Any]) -> Any:
        """Return the list of columns and length, which may be any objects."""
        new = object.__new__(cls)
        Rows.__init__(new, children[0], children[1], origins)
        return new

    def with_data(self, columns: Columns, length: Index, origins: tuple[Origin, ...]) -> Value:
        """Return a list of the same kind with other data."""
        return type(self).tree_unflatten(origins, (columns, length))

    @classmethod
    def known(cls, items: list[Value]) -> Value:
        """Return the list of these elements; raises Refusal if they are not alike."""
        columns, origins = stacked([as_element(item) for item in items])
        new = cls.tree_unflatten(origins, (columns, len(items)))
        new.hold(items)
        return new


def element_at(values: Rows, index: Index) -> Value:
    """Return the element of a list in one place of its columns; a container in it is a view."""
    node, place = values.node, (*values.place, index)
    leaves, tree = jax.tree.flatten(node._columns, is_leaf=is_part)

    def read(leaf: Column, origin: Origin) -> Value:
        if is_stored(leaf):
            return leaf.view(place, values)
        if isinstance(leaf, Optional):
            value = jax.tree.map(lambda part: read(part, origin), leaf.value, is_leaf=is_part)
            return Optional(value, leaf_at(leaf.present, place))
        return None if leaf is None else note(leaf_at(leaf, place), origin)

    found = [read(leaf, origin) for leaf, origin in zip(leaves, node.origins, strict=True)]
    element = plain(jax.tree.unflatten(tree, found))
    return note_copy(values, element)


def _narrowed(length: Value) -> Value:
    """Return a length with the dtype that those of lanes have: where types were joined, a known one got Python's."""
    is_wide = isinstance(length, jax.Array) and length.dtype == np.int64
    return length.astype(np.int32) if is_wide else length
