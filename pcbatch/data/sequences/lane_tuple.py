"""Tuples whose length depends on the lane: lists of the lane that nothing changes.

    tuple(xs)                              as long as the list
    transposed([[1, 2, 3], [4, 5, 6]])     [(1, 4), (2, 5), (3, 6)], the elements of `zip(*rows)`

A tuple with a length that is known while compiling is Python's own, until it meets one of the lane.
"""

from __future__ import annotations

from contextlib import suppress
from itertools import count, cycle, repeat

import jax
import jax.numpy as jnp
import numpy as np

from pcbatch.data.aliasing import holds_same
from pcbatch.data.checks import require
from pcbatch.data.columns import Shape, Unset, room
from pcbatch.data.container import Varying, for_kind
from pcbatch.data.elements import side_by_side
from pcbatch.data.optional import sure
from pcbatch.data.origins import Origin, kind_of
from pcbatch.data.rows import Rows
from pcbatch.data.sequences.lane_list import LaneList
from pcbatch.data.stored import is_part, parts, refuse_hash
from pcbatch.data.values import Index, Value
from pcbatch.errors import Refusal


@for_kind(Varying)
@jax.tree_util.register_pytree_node_class
class LaneTuple(LaneList):
    """A tuple whose length depends on the lane."""

    __slots__ = ()
    python_name = "tuple"
    __hash__ = refuse_hash  # type: ignore[assignment]
    NO_INDEX = "tuple index out of range"
    ABSENT = {"index": "tuple.index(x): x not in tuple"}

    @classmethod
    def of(cls, values: LaneList) -> LaneTuple:
        """Return the tuple of the elements of a list."""
        plain = values._plain()
        new: LaneTuple = cls.tree_unflatten(plain.origins, (plain.columns, plain.length))
        new.hold(values.elements_in(values))
        return holds_same(new, values)

    def beside(self, value: Value, lead: Shape) -> Value:
        """Return a known tuple that this one meets, or the columns of such, as one of the lane; others as they are."""
        if type(value) is not tuple or type(self) is not LaneTuple:
            return super().beside(value, lead)
        return self._of_known(value, lead)

    @classmethod
    def varying(cls, value: tuple[Value, ...], lead: Shape) -> Value:
        """Return a known tuple that meets one of another length, or columns of such, as one of the lane; those with
        parts of several kinds, as a record has, as they are."""
        kinds = {tuple(kind_of(jnp.result_type(leaf)) for leaf in jax.tree.leaves(part)) for part in value}
        with suppress(Refusal):
            return cls._of_known(value, lead) if len(kinds) < 2 else value
        return value

    @classmethod
    def _of_known(cls, value: tuple[Value, ...], lead: Shape) -> Value:
        if not lead:
            return cls.from_list(list(value))
        if not value:
            return cls.tree_unflatten((), (Unset(), jnp.zeros(lead, np.int32)))
        try:
            columns = side_by_side(value, lead)
        except Refusal:
            return value  # what meets it says in which way the elements are not alike
        origins = tuple(Origin.ARRAY if is_part(part) else Origin.UNKNOWN for part in parts(columns))
        return cls.tree_unflatten(origins, (columns, jnp.full(lead, len(value), np.int32)))

    def __getitem__(self, index: Index) -> Value:
        found = super().__getitem__(index)
        return type(self).of(found) if isinstance(index, slice) else found

    def __setitem__(self, index: Index, value: Value) -> None:
        raise TypeError(f"'{self.python_name}' object does not support item assignment")

    def __delitem__(self, index: Index) -> None:
        raise TypeError(f"'{self.python_name}' object doesn't support item deletion")

    def __add__(self, other: Value) -> Value:
        return self._joined(self, other) if type(other) in (tuple, LaneTuple) else NotImplemented

    def __radd__(self, other: Value) -> Value:
        return self._joined(other, self) if type(other) in (tuple, LaneTuple) else NotImplemented

    __iadd__ = __add__

    def __mul__(self, times: Index) -> Value:
        return type(self).of(super().__mul__(times))

    __rmul__ = __mul__

    @staticmethod
    def _joined(a: Value, b: Value) -> LaneTuple:
        new = a._plain() if isinstance(a, LaneTuple) else LaneList.from_list(list(a))
        new.extend(b if isinstance(b, LaneTuple) else list(b))
        return LaneTuple.of(new)


def transposed(rows: Value, strict: bool = False) -> Value:
    """Return the elements of `zip(*rows)` as a list, for rows of the lane; of other rows what `zip` gives."""
    rows = sure(rows, "Value after * must be an iterable, not NoneType")
    if isinstance(rows, LaneList):
        return _of_lists(rows._plain(), strict)
    if isinstance(rows, jax.Array) and rows.ndim >= 2 and len(rows):
        return LaneList.tree_unflatten((Origin.NUMBER,) * len(rows), (tuple(rows), rows.shape[1]))
    if isinstance(rows, list | tuple) and any(isinstance(row, LaneList) for row in rows):
        if any(isinstance(row, count | cycle | repeat) for row in rows):
            raise _refused("what has an end")
        return _of_known(list(rows), strict)
    return list(zip(*rows, strict=strict))


def _of_lists(rows: LaneList, strict: bool) -> Value:
    """The columns of a list of lists: tuples of the lane."""
    inner, n = rows.columns, rows.length
    if isinstance(inner, Unset) or (isinstance(inner, Rows) and isinstance(inner.columns, Unset)):
        return LaneList.from_list([])
    if type(inner) is tuple and inner:
        return _of_tuples(rows)
    if not isinstance(inner, LaneList):
        raise _refused("a list of lists or tuples")
    there = jnp.arange(room(rows.columns, 0) or 0, dtype=np.int32) < n
    lengths = jnp.broadcast_to(jnp.asarray(inner.length, np.int32), there.shape)
    least = jnp.min(lengths, where=there, initial=np.iinfo(np.int32).max)
    count = jnp.where(n > 0, least, 0)
    if strict:
        longest = jnp.max(lengths, where=there, initial=0)
        require(longest == count, "ValueError", "zip() arguments differ in length")
    columns = jax.tree.map(lambda leaf: jnp.swapaxes(leaf, 0, 1), inner.columns)
    lengths = jnp.broadcast_to(jnp.asarray(n, np.int32), (room(inner.columns, 1) or 0,))
    column = LaneTuple.tree_unflatten(inner.origins, (columns, lengths))
    return LaneList.tree_unflatten((Origin.ARRAY,), (column, count))


def _of_tuples(rows: LaneList) -> Value:
    """The columns of a list of tuples: as many as a tuple has parts, if there is one."""
    origins, columns = iter(rows.origins), []
    for part in rows.columns:
        own = tuple(next(origins) for _ in parts(part))
        columns.append(LaneTuple.tree_unflatten(own, (part, rows.length)))
    made: LaneList = LaneList.known(columns)
    made.length = jnp.where(rows.length > 0, len(columns), 0)
    return made


def _of_known(rows: list[Value], strict: bool) -> Value:
    """The columns of so many lists as are known while compiling: Python's tuples."""
    lists = [row._plain() if isinstance(row, LaneList) else LaneList.from_list(list(row)) for row in rows]
    lengths = [row.length for row in lists]
    count = lengths[0]
    for length in lengths[1:]:
        both_known = isinstance(count, int) and isinstance(length, int)
        count = min(count, length) if both_known else jnp.minimum(count, length)
    if strict:
        for length in lengths:
            require(length == count, "ValueError", "zip() arguments differ in length")
    if any(isinstance(row.columns, Unset) for row in lists):
        return LaneList.from_list([])
    size = min(room(row.columns, 0) or 0 for row in lists)
    columns = tuple(jax.tree.map(lambda leaf: leaf[:size], row.columns) for row in lists)
    origins = tuple(origin for row in lists for origin in row.origins)
    return LaneList.tree_unflatten(origins, (columns, count))


def _refused(wanted: str) -> Refusal:
    title = f"`zip(*rows)` takes {wanted}, and these rows are of another kind"
    return Refusal("PCB304", title, helps=("name the iterables: `zip(xs, ys)`",))
