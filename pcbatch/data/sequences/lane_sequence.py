"""Sequences of the lane as they are read: comparisons, and elements, searches, slices and unpacking of lists."""

from __future__ import annotations

import operator
from functools import partialmethod

import jax
import jax.numpy as jnp
import numpy as np

from pcbatch.data.aliasing import holds_same
from pcbatch.data.capacity import capacity as start_capacity
from pcbatch.data.checks import require, require_room
from pcbatch.data.columns import Unset, element_text, room, same_leaves, taken
from pcbatch.data.container import Container, class_for
from pcbatch.data.mappings.ordered_keys import keeping_order
from pcbatch.data.origins import number
from pcbatch.data.rows import Rows, element_at
from pcbatch.data.sequences import moves
from pcbatch.data.sequences.indices import SliceRange, checked_index, repeated, repetitions, slice_range
from pcbatch.data.sequences.list_order import (
    ask_about_lists,
    ask_identity,
    compare,
    equal,
    equal_to,
    first_equal,
    not_,
    require_order,
)
from pcbatch.data.stored import lists_in
from pcbatch.data.values import Columns, Index, Value
from pcbatch.diagnostics.lane_words import type_name
from pcbatch.errors import Refusal

SHARED_HELP = "write a comprehension, which makes a list for each: `[[] for _ in range(n)]`"


class Compared(Rows):
    """A sequence of the lane that is compared as those of Python are, element by element."""

    __slots__ = ()
    __hash__ = None  # type: ignore[assignment]

    def _as_operand(self, other: Value) -> Value:
        """Return what is compared in place of another operand."""
        return other

    def __eq__(self, other: Value) -> Value:
        other = self._as_operand(other)
        ask_about_lists(self, other)
        return equal(self, other)

    def __ne__(self, other: Value) -> Value:
        return not_(self == other)

    def _compared(self, op: Value, other: Value) -> Value:
        other = self._as_operand(other)
        require_order(self, other)
        return compare(op, self, other)

    __lt__, __le__ = partialmethod(_compared, operator.lt), partialmethod(_compared, operator.le)
    __gt__, __ge__ = partialmethod(_compared, operator.gt), partialmethod(_compared, operator.ge)


class LaneSequence(Compared):
    """A list or tuple of the lane as it is read."""

    __slots__ = ()
    NO_INDEX: str
    ABSENT: dict[str, str]

    # One element. The place of an element is its index in the columns.

    def _place(self, index: Index) -> Value:
        return index

    def element(self, index: Index) -> Value:
        """Return the element at an index that is known to be in range; a list is a view."""
        if self.source is not None and same_leaves(self.source[0], self._columns):
            return element_at(self.source[1], self.source[2](index))
        return element_at(self, self._place(index))

    def _taken(self, index: Index) -> Value:
        """The element at an index, no view: its place may be stored into afterwards."""
        return keeping_order(lambda leaf: leaf, self.element(index))

    def _checked(self, index: Index, message: str) -> tuple[Value, Value]:
        """The place of an index to read, and one to store to, out of range where the index is."""
        return checked_index(index, self.length, self.capacity, message)

    # All elements.

    def _numbers(self) -> Value:
        """The numbers of all places, int32[capacity]."""
        return jnp.arange(self.capacity, dtype=np.int32)

    def _valid(self) -> Value:
        return self._numbers() < self.length

    def _new(self, columns: Columns, length: Index) -> Value:
        """Return a list with other columns of such elements."""
        new = class_for(list).tree_unflatten(self.origins, (columns, length))
        holds_same(new, self)
        new.hold(self.elements_in(self))
        new.source = self.source
        return new

    def _plain(self) -> Value:
        """Return a list of these elements, from place 0 on, that is no view."""
        return self._new(self.columns, self.length)

    def as_list(self) -> Value:
        """Return the elements as a list, no view and no tuple."""
        return self._plain()

    def copy(self) -> Value:
        """Return a list of the same elements."""
        new = self.with_data(jax.tree.map(lambda leaf: leaf, self.columns), self.state, self.origins)
        new.hold(self.elements_in(self))
        new.source = self.source
        return holds_same(new, self)

    __copy__ = copy

    def _equal(self, value: Value) -> Value:
        """Return the mask of the elements that equal a value, bool[capacity]."""
        return jnp.logical_and(self._valid(), equal_to(self._compared_with(value), value))

    def _first(self, value: Value, start: Index, stop: Index) -> Value:
        """Return the place of the first element from `start` on, before `stop`, that equals a value; else `stop`."""
        return first_equal(self._compared_with(value), value, start, stop)

    def _compared_with(self, value: Value) -> Value:
        plain = self._plain()
        if not isinstance(value, Container) and not isinstance(plain.columns, Unset):
            ask_identity(plain.columns, value, plain._valid())
        return plain

    def index(self, value: Value, start: Index = 0, stop: Index = None, /) -> Index:
        """Return the index of the first element that equals a value."""
        found = slice_range(slice(start, stop), self.length)
        end = found.start + found.count
        place = self._first(value, found.start, end)
        require(place < end, "ValueError", self.ABSENT["index"])
        return number(jnp.asarray(place, np.int32))

    def count(self, value: Value, /) -> Index:
        """Return the number of elements that equal a value."""
        return number(jnp.sum(self._equal(value), dtype=np.int32))

    def contains(self, value: Value) -> Value:
        """Return whether an element equals a value."""
        return number(jnp.asarray(self._first(value, 0, self.length) < self.length))

    # Subscripts.

    def __getitem__(self, index: Index) -> Value:
        if isinstance(index, slice):
            return self._slice(slice_range(index, self.length))
        return self.element(self._checked(index, self.NO_INDEX)[0])

    def _slice(self, part: SliceRange) -> Value:
        plain = self._plain()
        columns = plain.columns
        if isinstance(part.count, int) and room(columns, 0) is not None:
            columns = taken(columns, part.start + part.step * jnp.arange(part.count, dtype=np.int32))
        elif type(part.step) is int and part.step == 1:
            if not (type(part.start) is int and part.start == 0):
                columns = moves.part(columns, part.start, part.count)
        else:
            columns = taken(columns, part.start + part.step * self._numbers())
        return plain._new(columns, part.count)

    def __mul__(self, times: Index) -> Value:
        times = repetitions(times)
        plain = self._plain()
        n = plain.length
        if lists_in(plain.columns):
            title = "`xs * n` has each list in `xs` several times, and a change of one would be seen in all"
            raise Refusal("PCB304", title, helps=(SHARED_HELP,))
        whole = repeated(n, times)
        if room(plain.columns, 0) is None:
            return plain._new(plain.columns, whole)
        size = whole if isinstance(whole, int) else max(start_capacity(), self.capacity)
        require_room(whole, size)
        order = jnp.arange(size, dtype=np.int32) % (max(n, 1) if isinstance(n, int) else jnp.maximum(n, 1))
        return plain._new(taken(plain.columns, order), whole)

    __rmul__ = __mul__

    # Unpacking.

    def unpacked(self, count: int) -> tuple[Value, ...]:
        """Return the elements of `a, b = xs`, as many as there are names."""
        n = self.length
        few = ("not enough values to unpack (expected ", str(count), ", got ", n, ")")
        require(n >= count, "ValueError", *few)
        require(n <= count, "ValueError", f"too many values to unpack (expected {count})")
        return tuple(self.element(k) for k in range(count))

    def unpacked_star(self, before: int, after: int) -> list[Value]:
        """Return the values of `a, *rest, z = xs`, with so many names before and after the star."""
        n = self.length
        few = ("not enough values to unpack (expected at least ", str(before + after), ", got ", n, ")")
        require(n >= before + after, "ValueError", *few)
        first = [self.element(k) for k in range(before)]
        last = [self.element(n - k) for k in range(after, 0, -1)]
        return [*first, self._plain()[before : n - after], *last]

    def __jax_array__(self) -> Value:
        """Return the elements as one array, where their number is known while compiling."""
        columns, n = self._plain().columns, self.length
        if isinstance(columns, jax.Array) and isinstance(n, int):
            return columns[:n]
        raise Refusal(
            "PCB306",
            "an array has a shape that is known while compiling, and the length of this list depends on the lane",
            helps=("keep the list, or make an array of the greatest length and store into it, `ys.at[k].set(x)`",),
        )

    def __repr__(self) -> str:
        kind = type_name(self)
        return f"empty {kind}" if isinstance(self._columns, Unset) else f"{kind} of {element_text(self._columns)}"
