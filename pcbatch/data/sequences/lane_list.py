"""Lists of the lane: mutable objects with the methods of Python's lists, made of arrays.

    xs = LaneList.from_list([1, 2], capacity=8)
    xs.append(3)                    columns i32[8], length 3

While one primitive is traced a list is an ordinary mutable object; between primitives its leaves are values. A store
is one scatter into each column, so that a lane stores one row in place. What lies behind the length influences nothing.
Where a check fails, the list stays as it is.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

import jax
import jax.numpy as jnp
import numpy as np

from pcbatch.data.aliasing import holds_objects
from pcbatch.data.capacity import capacity as start_capacity
from pcbatch.data.capacity import made_of_others, rounded
from pcbatch.data.catalogue import Facts
from pcbatch.data.checks import limit, require, require_records, require_room
from pcbatch.data.columns import Unset, padded, put, room, taken
from pcbatch.data.container import Container, for_kind
from pcbatch.data.elements import as_element, blank, join_origins, origins_of, stacked, unify
from pcbatch.data.origins import Origin
from pcbatch.data.sequences import list_sorting, moves
from pcbatch.data.sequences.indices import at_least_zero, in_range, repetitions, slice_range
from pcbatch.data.sequences.lane_sequence import SHARED_HELP, LaneSequence
from pcbatch.data.stored import lists_in
from pcbatch.data.values import Column, Flag, Index, Value
from pcbatch.errors import Refusal


@for_kind(list)
@jax.tree_util.register_pytree_node_class
class LaneList(LaneSequence):
    """A mutable list of the lane."""

    __slots__ = ()
    EMPTY = "pop from empty list"
    NO_INDEX = "list index out of range"
    NO_PLACE = "list assignment index out of range"
    ABSENT = {"index": "list.index(x): x not in list", "remove": "list.remove(x): x not in list"}

    # Making lists.

    @classmethod
    def from_list(cls, items: Value, capacity: int | None = None) -> Value:
        """Return the list of the elements of a Python sequence, with room for `capacity` elements at least."""
        new = cls.known(list(items))
        new._reserve(capacity or 0)
        return new

    @classmethod
    def from_array(cls, values: Value) -> Value:
        """Return the list of the rows of an array."""
        return cls.tree_unflatten((Origin.ARRAY,), (jnp.asarray(values), len(values)))

    @classmethod
    def filled(cls, value: Value, n: Index) -> Value:
        """Return the list `[value] * n`."""
        if lists_in(value):
            title = "all elements of `[xs] * n` are one list, and a change of one would be seen in all"
            raise Refusal("PCB304", title, helps=(SHARED_HELP,))
        new = cls.repeated(value, repetitions(n))
        if holds_objects([value]):
            new.held = (value, value)  # one object stands at several places
        return new

    @classmethod
    def repeated(cls, value: Value, n: Index) -> Value:
        """Return the list of `n` elements like this one, at least none; a list in it is a new one for each."""
        columns, origins = stacked([as_element(value)])
        size = n if isinstance(n, int) else start_capacity()
        require_room(n, size)
        columns = jax.tree.map(lambda leaf: jnp.broadcast_to(leaf, (size, *leaf.shape[1:])), columns)
        return cls.tree_unflatten(origins, (columns, n))

    # Room.

    def _reserve(self, size: int) -> None:
        """Give the list room for so many elements at least."""
        if (here := room(self.node._columns, len(self.lead))) is not None and here < size:
            self.node._columns = padded(self.node._columns, len(self.lead), size)

    def _make_room(self, needed: Index, of: str = "") -> None:
        """Give the list room for `needed` elements, or let the lane stop; `of`: the class of records, in the heap."""
        self._reserve(max(self._start(of), rounded(needed) if isinstance(needed, int) else 0))
        if room(self.node._columns, 0) is not None:
            (partial(require_records, name=of) if of else self._require_room)(needed, self.capacity)

    def _fit(self, element: Value, of: str = "") -> Value:
        """Give the columns a type that covers an element; return the element with that type."""
        node, lead, element = self.node, self.lead, as_element(element)
        if isinstance(node._columns, Unset):
            size = max(self._start(of), self._length if isinstance(self._length, int) else 0)
            node.origins = origins_of(element)
            node._columns = blank(element, (), (*lead, size))
        else:
            node.origins = join_origins(node._columns, node.origins, element, origins_of(element))
        self.origins = node.origins
        node._columns, element = unify(node._columns, (*lead, self.capacity), element, ())
        return element

    # One element. The place of an element is its index in the columns.

    def _set(self, index: Index, element: Value) -> None:
        self._put(self._place(index), element)

    def _put(self, place: Index, element: Value) -> None:
        element, at = self._fit(element), (*self.place, place)
        self.node._columns = jax.tree.map(lambda leaf, new: put(leaf, at, new), self.node._columns, element)

    @Facts(changes=True, grows=True, moves=True)
    def append(self, value: Value, /) -> None:
        """Add an element at the end."""
        self._append(value)

    def append_record(self, fields: Value, name: str) -> None:
        """Add a record of a class at the end of a list of the heap."""
        self._append(fields, name)

    def _append(self, value: Value, of: str = "") -> None:
        n = self.length
        self.hold(value)
        self._fit(value, of)
        self._make_room(n + 1, of)
        self._set(n, value)
        self.length = n + 1

    @Facts(changes=True, removes=True, moves=True, by_index=True)
    def pop(self, index: Index = -1, /) -> Value:
        """Remove an element and return it."""
        n = self.length
        require(n > 0, "IndexError", self.EMPTY)
        if type(index) is int and index == -1:
            last = at_least_zero(n - 1)
            value, self.length = self._taken(last), last
            return value
        read, _ = self._checked(index, "pop index out of range")
        value = self._taken(read)
        self._close(read, n, moves.one_if(in_range(index, n)))
        return value

    @Facts(changes=True, moves=True, by_index=True)
    def insert(self, index: Index, value: Value, /) -> None:
        """Insert an element before an index, which may be out of range."""
        n = self.length
        at = slice_range(slice(index, None), n).start
        self.hold(value)
        self._fit(value)
        self._make_room(n + 1)
        self._straighten()
        self.columns = moves.opened(self.columns, n, at)
        self._set(at, value)
        self.length = n + 1

    # All elements.

    def _straighten(self) -> None:
        """Put the first element in place 0."""

    def _rearrange(self, order: Column) -> None:
        """Put the element at `order[k]` in place k."""
        self._straighten()
        self.columns = taken(self.columns, order)

    def _close(self, at: Index, n: Index, removed: Index) -> None:
        """Remove elements, of `n`, from an index on."""
        self._straighten()
        self.columns = moves.closed(self.columns, n, at, removed)
        self.length = n - removed

    @Facts(changes=True, grows=True, moves=True, iterates=True, stepwise=True, one="append")
    def extend(self, values: Value, /) -> None:
        """Add all elements of a list, an array or a Python iterable at the end."""
        other = as_list(values)
        self.hold(self.elements_in(other))
        if isinstance(other.length, int) and other.length == 1:
            self.append(other._taken(0))
        elif not (isinstance(other.length, int) and other.length == 0):
            self._splice(self.length, 0, other)

    def _splice(self, at: Index, removed: Index, other: LaneList) -> None:
        """Replace `removed` elements from an index on by those of another list."""
        n, m = self.length, other.length
        if room(other.columns, 0) is None and isinstance(other.columns, Unset):
            other = self._new(self.columns, 0)
        if isinstance(self.node._columns, Unset):
            self._fit(other._taken(0))
        total = n - removed + m
        self._make_room(total)
        mine, theirs = unify(self._plain(), (), other._plain(), ())
        self.origins = self.node.origins = mine.origins
        self.columns = moves.replaced(mine.columns, n, at, removed, theirs.columns, m)
        self.length = total

    @Facts(changes=True, moves=True)
    def clear(self) -> None:
        """Remove all elements, in place."""
        self.length = 0

    @Facts(changes=True)
    def reverse(self) -> None:
        """Reverse the order of the elements."""
        k, n = self._numbers(), self.length
        self._rearrange(jnp.where(k < n, n - 1 - k, k))

    @Facts(changes=True, ambiguous=True)
    def sort(self, *, key: Callable[[Value], Value] | None = None, reverse: Flag = False) -> None:
        """Sort the elements; equal ones keep their order."""
        self._rearrange(list_sorting.sorted_order(self._plain(), key, reverse))

    @Facts(changes=True, moves=True, by_value=True)
    def remove(self, value: Value, /) -> None:
        """Remove the first element that equals a value."""
        place = self._first(value, 0, self.length)
        holds = place < self.length
        require(holds, "ValueError", self.ABSENT["remove"])
        self._close(place, self.length, moves.one_if(holds))

    # Subscripts.

    def __setitem__(self, index: Index, value: Value) -> None:
        self.hold(self.elements_in(value) if isinstance(index, slice) else value)
        if not isinstance(index, slice):
            self._set(self._checked(index, self.NO_PLACE)[1], value)
            return
        part, other = slice_range(index, self.length), as_list(value)
        if type(part.step) is int and part.step == 1:
            self._splice(part.start, part.count, other)
            return
        same = part.count == other.length
        if isinstance(part.step, jax.Array):
            limit(same | (part.step != 1), "a slice with a step of 1, where steps differ, keeps its length here")
        sizes = (other.length, " to extended slice of size ", part.count)
        require(same, "ValueError", "attempt to assign sequence of size ", *sizes)
        mine, theirs = unify(self._plain(), (), other, ())
        if room(theirs.columns, 0) is None:
            return
        k = jnp.arange(theirs.capacity, dtype=np.int32)
        inside = k < part.count if isinstance(same, bool) else same & (k < part.count)
        place = jnp.where(inside, part.start + part.step * k, mine.capacity)
        self.origins = self.node.origins = mine.origins
        self.columns = jax.tree.map(lambda leaf, new: put(leaf, (place,), new), mine.columns, theirs.columns)

    def __delitem__(self, index: Index) -> None:
        n = self.length
        if not isinstance(index, slice):
            read, _ = self._checked(index, self.NO_PLACE)
            self._close(read, n, moves.one_if(in_range(index, n)))
            return
        part = slice_range(index, n)
        if type(part.step) is int and part.step == 1:
            self._close(part.start, n, part.count)
        else:
            self._rearrange(jnp.argsort(part.holds(self._numbers()), stable=True))
            self.length = n - part.count

    # Operators.

    def __add__(self, other: Value) -> Value:
        mine, other = self.as_rows(), other.as_rows() if isinstance(other, LaneList) else other
        if type(other) not in (list, type(mine)):
            return NotImplemented
        new = mine.copy()
        with made_of_others():
            new.extend(other)
        return new

    def __radd__(self, other: Value) -> Value:
        if not isinstance(other, list):
            return NotImplemented
        new = LaneList.from_list(other)
        with made_of_others():
            new.extend(self)
        return new

    def __iadd__(self, other: Value) -> Value:
        self.extend(other)
        return self


def as_list(values: Value) -> LaneList:
    """Return a list of the elements of a container, an array or a Python iterable, in order; a list itself."""
    if isinstance(values, Container):
        return values.as_list()  # type: ignore[no-any-return]
    if isinstance(values, jax.Array | np.ndarray):
        return LaneList.from_array(values)  # type: ignore[no-any-return]
    return LaneList.from_list(values)  # type: ignore[no-any-return]
