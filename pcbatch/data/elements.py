"""The elements of a list of the lane: pytrees, stored as columns with one more axis in front for each list around them.

    [(1, 2.5), (3, 4.0)]      columns (i32[capacity], f32[capacity]), length 2
    [[1, 2], [3]]             columns of the outer list: an inner list with columns i32[capacity, capacity']
                              and lengths i32[capacity]

A list in an element, a `Rows`, is a node of the pytree. Where it lies in the columns of another list its leaves, its
length among them, have the axes of the lists around it, called its *lead* here.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import reduce
from itertools import islice
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from pcbatch.data.aliasing import note_copy
from pcbatch.data.capacity import capacity, check_nested
from pcbatch.data.columns import (
    Shape,
    Unset,
    as_array,
    leaf_at,
    numbers,
    one_level,
    padded,
    put,
    room,
    unify_leaves,
    zero_of,
)
from pcbatch.data.container import Container
from pcbatch.data.joinable import Joinable
from pcbatch.data.kept import kept, kept_length
from pcbatch.data.mappings.ordered_keys import ordered, plain
from pcbatch.data.members import of_member
from pcbatch.data.optional import Optional
from pcbatch.data.origins import KINDS, Origin, both, kind_of, met, note, source_of
from pcbatch.data.sequences.known_tuples import tuple_beside
from pcbatch.data.stored import Stored, UnlikeError, is_part, is_stored, is_table, parts
from pcbatch.errors import Refusal


class Rows(Stored):
    """The data of a list: columns, length and origins; a view of a list in another list has those of its place.

    Attributes:
        origins: by leaf of the element, whether its scalars are numbers of Python; containers in it count as one leaf.
        held: the mutable objects that have become elements of the list while this primitive is traced.
        source: columns, a list that they are made of, and the place there of an index; one element is read there.
    """

    __slots__ = ("_columns", "_length", "_node", "held", "origins", "place", "source")

    def __init__(self, columns: Any, length: Any, origins: tuple[Origin, ...]) -> None:
        self._columns, self._length, self.origins = columns, length, origins
        self._node: Rows = self
        self.place: tuple[Any, ...] = ()
        self.held: tuple[Any, ...] = ()
        self.source: tuple[Any, Rows, Callable[[Any], Any]] | None = None

    def view(self, place: tuple[Any, ...], parent: Any) -> Any:
        """Return the list at indices of the containers around this one; what is done to it is done to this one."""
        new = object.__new__(type(self))
        Rows.__init__(new, None, None, self.origins)
        new._node, new.place, new.parent = self, place, parent
        return new

    def unified(self, lead: Shape, other: Any, other_lead: Shape) -> tuple[Any, Any]:
        """Return this list and another one with the type that covers both."""
        return _unify_rows(self, lead, other, other_lead)

    def blanked(self, lead: Shape, new: Shape) -> Any:
        """Return empty lists of this type with another lead."""
        size = room(self.columns, len(lead))
        check_nested(*new, size)
        inner = self.columns if size is None else blank(self.columns, (*lead, size), (*new, size))
        return self.with_data(inner, self.no_state(lead, new), self.origins)

    def no_state(self, lead: Shape, new: Shape) -> Any:
        """Return the state of empty lists."""
        return jnp.zeros(new, np.int32) if new else 0

    def straight(self) -> Any:
        """Return the list with its elements from place 0 on, so that it may be given more room."""
        return self

    def as_rows(self) -> Any:
        """Return the list as it is stored in others, with its elements in columns."""
        return self

    def elements_in(self, values: Any) -> tuple[Any, ...]:
        """Return the mutable objects that a list or a Python iterable has for elements, or in them."""
        if not isinstance(values, Rows):
            return tuple(values) if isinstance(values, list | tuple) else ()
        views = (part.view((*values.place, 0), values) for part in parts(values.node._columns) if is_stored(part))
        return (*values.held, *views)

    @property
    def columns(self) -> Any:
        """The columns; those of a view are read from the list around it."""
        node = self.node
        return node._columns if node is self else jax.tree.map(lambda leaf: leaf_at(leaf, self.place), node._columns)

    @columns.setter
    def columns(self, columns: Any) -> None:
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
    def length(self) -> Any:
        """The number of elements: int32[], or an int where it is known while compiling."""
        return self._length if self._node is self else leaf_at(self.node._length, self.place)

    @length.setter
    def length(self, length: Any) -> None:
        if self._node is self:
            self._length = kept_length(self._length, length)
        else:
            self.node._length = put(self.node._length, self.place, length)

    @property
    def state(self) -> Any:
        """The length, with what else there is beside the columns."""
        return self.length

    @property
    def capacity(self) -> int:
        """The number of elements that there is room for."""
        size = room(self.node._columns, len(self.lead))
        if size is not None:
            return size
        return max(capacity(), self._length if isinstance(self._length, int) else 0)

    def __iter__(self) -> Iterator[Any]:
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

    def with_data(self, columns: Any, length: Any, origins: tuple[Origin, ...]) -> Any:
        """Return a list of the same kind with other data."""
        return type(self).tree_unflatten(origins, (columns, length))

    @classmethod
    def known(cls, items: list[Any]) -> Any:
        """Return the list of these elements; raises Refusal if they are not alike."""
        columns, origins = stacked([prepare(item) for item in items])
        new = cls.tree_unflatten(origins, (columns, len(items)))
        new.hold(items)
        return new


# Structures.


def prepare(value: Any) -> Any:
    """Return an element with the containers in it as containers of the lane."""
    value = of_member(value)
    if isinstance(value, Stored):
        return value.as_rows() if isinstance(value, Rows) else value
    if isinstance(value, set) or is_table(value):
        from pcbatch.data.mappings.covering import of_lane

        return of_lane(value)
    if isinstance(value, list):
        return list_class().known(value)
    if isinstance(value, str | bytes):
        return text_of(value)
    if isinstance(value, Container):
        title = f"a {getattr(value, 'python_name', 'container')} of the lane cannot be an element of another container"
        raise Refusal("PCB304", title, helps=("use one whose keys are tuples: `seen[a, b]` for `seen[a][b]`",))
    value = ordered(value)
    children, tree = one_level(value)
    return value if tree is None else jax.tree.unflatten(tree, [prepare(child) for child in children])


def list_class() -> type[Rows]:
    """Return the class of lists of the lane."""
    from pcbatch.data.sequences.lane_list import LaneList

    return LaneList


def text_of(value: str | bytes) -> Rows:
    """Return a known text, or known bytes, as those of the lane."""
    from pcbatch.data.texts.lane_bytes import LaneBytes
    from pcbatch.data.texts.lane_text import LaneText

    return LaneBytes.known_bytes(value) if isinstance(value, bytes) else LaneText.of(value)


def unify(a: Any, a_lead: Shape, b: Any, b_lead: Shape) -> tuple[Any, Any]:
    """Return two elements with the type that covers both.

    Args:
        a: an element, prepared, or columns of elements.
        a_lead: the shape of the axes in front of all its leaves.
        b: likewise.
        b_lead: likewise.

    Raises:
        Refusal: if there is no such type.
    """
    if isinstance(a, Unset) or isinstance(b, Unset):
        return (blank(b, b_lead, a_lead) if isinstance(a, Unset) else a), (
            blank(a, a_lead, b_lead) if isinstance(b, Unset) else b
        )
    a, b = tuple_beside(a, a_lead, b), tuple_beside(b, b_lead, a)
    if isinstance(a, Stored) and isinstance(b, Stored):
        return a.unified(a_lead, b, b_lead)
    if isinstance(a, Joinable) or isinstance(b, Joinable):
        return _unify_joinable(a, a_lead, b, b_lead)
    if isinstance(a, Optional) or isinstance(b, Optional) or (a is None) is not (b is None):
        a, b = _optional(a, a_lead, b, b_lead), _optional(b, b_lead, a, a_lead)
        value, other = unify(a.value, a_lead, b.value, b_lead)
        return Optional(value, a.present), Optional(other, b.present)
    (a_children, a_tree), (b_children, b_tree) = one_level(a), one_level(b)
    stored = isinstance(a, Stored) or isinstance(b, Stored)
    if a_tree is None and b_tree is None and not stored:
        return unify_leaves(a, a_lead, b, b_lead)
    if a_tree is None or b_tree is None or a_tree != b_tree or stored:
        raise UnlikeError(a, b)
    pairs = [unify(x, a_lead, y, b_lead) for x, y in zip(a_children, b_children, strict=True)]
    return jax.tree.unflatten(a_tree, [x for x, _ in pairs]), jax.tree.unflatten(b_tree, [y for _, y in pairs])


def _unify_joinable(a: Any, a_lead: Shape, b: Any, b_lead: Shape) -> tuple[Any, Any]:
    one, other = (a, b) if isinstance(a, Joinable) else (b, a)
    static = one.covering(other) if other is None or isinstance(other, Joinable) else None
    if static is None:
        raise UnlikeError(a, b)
    leads = ((a, a_lead), (b, b_lead))
    x, y = (one.none(static, lead) if value is None else value.typed(static) for value, lead in leads)
    return x, y


def _optional(value: Any, lead: Shape, other: Any, other_lead: Shape) -> Optional:
    """Return a value as one that may be None; `other` has its type."""
    if isinstance(value, Optional):
        return value
    if value is not None:
        return Optional(value, jnp.ones(lead, bool))
    other = other.value if isinstance(other, Optional) else other
    return Optional(blank(other, other_lead, lead), jnp.zeros(lead, bool))


def _unify_rows(a: Rows, a_lead: Shape, b: Rows, b_lead: Shape) -> tuple[Rows, Rows]:
    if type(a) is not type(b):
        raise UnlikeError(a, b)
    sizes = [room(rows.columns, len(lead)) for rows, lead in ((a, a_lead), (b, b_lead))]
    size = max((size for size in sizes if size is not None), default=0)
    a, b = (rows if here in (None, size) else rows.straight() for rows, here in zip((a, b), sizes, strict=True))
    a_columns = padded(a.columns, len(a_lead), size)
    b_columns = padded(b.columns, len(b_lead), size)
    origins = join_origins(a.columns, a.origins, b.columns, b.origins)
    a_columns, b_columns = unify(a_columns, (*a_lead, size), b_columns, (*b_lead, size))
    return a.with_data(a_columns, a.state, origins), b.with_data(b_columns, b.state, origins)


def join_origins(a: Any, a_origins: tuple[Origin, ...], b: Any, b_origins: tuple[Origin, ...]) -> tuple[Origin, ...]:
    """Return the origins, by leaf, of the type that covers two elements; they may be columns of elements."""
    if isinstance(a, Unset) or isinstance(b, Unset):
        return b_origins if isinstance(a, Unset) else a_origins
    if isinstance(a, Rows) is not isinstance(b, Rows):  # a known tuple and one of the lane
        return a_origins if isinstance(a, Rows) else b_origins
    # `unify` says if they are not alike.
    if type(a) is tuple and type(b) is tuple:  # parts are a known tuple here, of any number of leaves, and a row there
        groups = zip(a, _by_child(a, a_origins), b, _by_child(b, b_origins), strict=False)
        return tuple(origin for group in groups for origin in join_origins(*group))
    pairs = zip(parts(a), parts(b), a_origins, b_origins, strict=False)
    return tuple(_join_origin(x, y, one, other) for x, y, one, other in pairs)


def _by_child(element: tuple[Any, ...], origins: tuple[Origin, ...]) -> list[tuple[Origin, ...]]:
    """The origins of each part of a tuple."""
    rest = iter(origins)
    return [tuple(islice(rest, len(parts(child)))) for child in element]


def _join_origin(x: Any, y: Any, one: Origin, other: Origin) -> Origin:
    if x is None or y is None:
        return other if x is None else one
    if is_part(x) or is_part(y):
        return met(one, None, other, None)
    return met(one, kind_of(jnp.result_type(x)), other, kind_of(jnp.result_type(y)))


def origins_of(element: Any) -> tuple[Origin, ...]:
    """Return the origins of an element, by leaf; lists in it and arrays count as arrays."""
    return tuple(_origin(part) for part in parts(element))


def _origin(part: Any) -> Origin:
    if isinstance(part, Optional):
        return reduce(both, map(_origin, parts(part.value)))
    if is_part(part) or jnp.shape(part) != ():
        return Origin.ARRAY
    return source_of(part) or Origin.ARRAY


def blank(value: Any, lead: Shape, new: Shape) -> Any:
    """Return columns with the type of `value` and another lead; they hold anything, and lists in them are empty."""
    if isinstance(value, Unset):
        return Unset()

    def fill(leaf: Any) -> Any:
        if isinstance(leaf, Stored):
            return leaf.blanked(lead, new)
        leaf = jnp.asarray(leaf)
        shape = (*new, *leaf.shape[len(lead) :])
        if leaf.size == 0:
            return jnp.broadcast_to(zero_of(leaf), shape)
        first = leaf[(0,) * len(lead)]
        return jnp.broadcast_to(first, shape)

    return jax.tree.map(fill, value, is_leaf=is_stored)


def stacked(items: list[Any]) -> tuple[Any, tuple[Origin, ...]]:
    """Return the columns of elements, which are prepared, and the origins of an element."""
    if not items:
        return Unset(), ()
    origins = origins_of(items[0])
    if type(items[0]) in KINDS and all(type(item) is type(items[0]) for item in items):
        return numbers(items), origins
    whole = items[0]
    for item in items[1:]:
        origins = join_origins(whole, origins, item, origins_of(item))
        whole, _ = unify(whole, (), item, ())
    if len(items) == 1:
        return jax.tree.map(lambda leaf: as_array(leaf)[None], whole), origins
    alike = [unify(whole, (), item, ())[1] for item in items]
    return jax.tree.map(lambda *leaves: jnp.stack(leaves), *alike), origins


def element_at(values: Rows, index: Any) -> Any:
    """Return the element of a list in one place of its columns; a container in it is a view."""
    node, place = values.node, (*values.place, index)
    leaves, tree = jax.tree.flatten(node._columns, is_leaf=is_part)

    def read(leaf: Any, origin: Origin) -> Any:
        if is_stored(leaf):
            return leaf.view(place, values)
        if isinstance(leaf, Optional):
            value = jax.tree.map(lambda part: read(part, origin), leaf.value, is_leaf=is_part)
            return Optional(value, leaf_at(leaf.present, place))
        return None if leaf is None else note(leaf_at(leaf, place), origin)

    found = [read(leaf, origin) for leaf, origin in zip(leaves, node.origins, strict=True)]
    element = plain(jax.tree.unflatten(tree, found))
    return note_copy(values, element)
