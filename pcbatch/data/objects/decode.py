"""The values of fields: what is gathered from the columns at a row becomes the value that Python would have there."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import jax
import jax.numpy as jnp

from pcbatch.data.checks import require
from pcbatch.data.container import class_for
from pcbatch.data.elements import unify
from pcbatch.data.joinable import Joinable, joined
from pcbatch.data.members import MemberValue
from pcbatch.data.objects import schema as kinds
from pcbatch.data.objects.ref_type import RefType
from pcbatch.data.objects.schema import Fixed, Kind, Maybe, Member, Nothing, Number, Pointer, Schema
from pcbatch.data.objects.tables import WantsCopies, columns_of
from pcbatch.data.optional import Optional
from pcbatch.data.origins import either as either_origin
from pcbatch.data.origins import note, number
from pcbatch.data.stored import Stored
from pcbatch.data.values import Column, Flag, Index, Value
from pcbatch.errors import Refusal


def gather(column: Column, row: Value) -> Value:
    """Return a row of a column, the first or the last one if there is none: the lane has failed then."""
    return column.at[row].get(mode="clip", wrap_negative_indices=False)


def value(kind: Kind, columns: Sequence[Column], column: int, row: Value, table: int, schema: Schema) -> Value:
    """Return the value of a field of some kind, whose columns start at `column`, in a row."""
    match kind:
        case Nothing():
            return None
        case Number(python=python):
            read = gather(columns[column], row)
            return read if python is None else number(read)
        case Member(enum=members):
            return MemberValue(gather(columns[column], row), members)
        case Maybe(element=element):
            present = gather(columns[column], row)
            return Optional(value(element, columns, column + 1, row, table, schema), present)
        case Pointer():
            return class_for(Pointer)(gather(columns[column], row), RefType(table, schema, kind.classes, kind.optional))
        case Fixed(items=items):
            parts = []
            for item in items:
                parts.append(value(item, columns, column, row, table, schema))
                column += kinds.width(item)
            return tuple(parts)
        case kinds.Sequence():
            type_ = ListType(table, schema, ((kind, column),), kind.optional, kind.type)
            start, length = gather(columns[column], row), gather(columns[column + 1], row)
            return RecordList((start, length), type_)


def either(condition: Flag, a: Value, b: Value, name: str) -> Value:
    """Return the one of two values of a field that a condition chooses."""
    if isinstance(condition, bool):
        return a if condition else b
    if isinstance(a, Joinable) or isinstance(b, Joinable):
        if (alike := joined(a, (), b, ())) is None:
            raise _differ(name)
        return jax.tree.map(partial(jnp.where, condition), *alike)
    if isinstance(a, RecordList) and isinstance(b, RecordList):
        return _either_list(condition, a, b, name)
    if isinstance(a, Optional) or isinstance(b, Optional) or a is None or b is None:
        return _either_optional(condition, a, b, name)
    if isinstance(a, Stored) and isinstance(b, Stored):  # with room for either
        a, b = unify(a.as_rows(), (), b.as_rows(), ())
    one_tree: Any = jax.tree.structure(a)
    if one_tree != jax.tree.structure(b):
        raise _differ(name)
    return jax.tree.map(lambda x, y: note(jnp.where(condition, x, y), either_origin(x, y)), a, b)


def _either_optional(condition: Flag, a: Value, b: Value, name: str) -> Value:
    if a is None and b is None:
        return None
    values = [part.value if isinstance(part, Optional) else part for part in (a, b)]
    present = [part.present if isinstance(part, Optional) else part is not None for part in (a, b)]
    if any(isinstance(part, RecordList) for part in values):
        raise _differ(name)
    one = values[0] if values[0] is not None else values[1]
    values = [one if part is None else part for part in values]
    return Optional(either(condition, values[0], values[1], name), jnp.where(condition, present[0], present[1]))


def _either_list(condition: Flag, a: RecordList, b: RecordList, name: str) -> RecordList:
    """A list of one of several classes, whose elements stand in different columns."""
    one, other = a.list_type, b.list_type
    if one.type is not other.type:
        raise _differ(name)
    chosen = [part.which if len(part.list_type.sources) > 1 else jnp.int32(0) for part in (a, b)]
    which = jnp.where(condition, chosen[0], chosen[1] + len(one.sources))
    start, length = (jnp.where(condition, a.parts[k], b.parts[k]) for k in range(2))
    sources = (*one.sources, *other.sources)
    type_ = ListType(one.table, one.schema, sources, one.optional or other.optional, one.type)
    return RecordList((start, length, which), type_)


def _differ(name: str) -> Refusal:
    return Refusal(
        "PCB320",
        f"`{name}` is of another kind in other classes of this record",
        helps=("tell the classes apart first: `match x: case TheClass(): ...`", "give the fields other names"),
    )


@dataclass(frozen=True, slots=True)
class ListType:
    """The type of a list of a record: its elements stand in one of some columns, each with its kind."""

    table: int
    schema: Schema
    sources: tuple[tuple[kinds.Sequence, int], ...]
    optional: bool
    type: type


@jax.tree_util.register_pytree_with_keys_class
class RecordList:
    """A list or tuple in a field of a record: a piece of a column. It cannot be changed."""

    __slots__ = ("list_type", "parts")

    def __init__(self, parts: Sequence[Value], type_: ListType) -> None:
        self.parts, self.list_type = tuple(parts), type_

    def tree_flatten_with_keys(self) -> tuple[tuple[tuple[Value, Value], ...], ListType]:
        """Return where it starts, its length and its column, if there are several."""
        names = map(jax.tree_util.GetAttrKey, ("start", "length", "which"))
        return tuple(zip(names, self.parts, strict=False)), self.list_type

    @classmethod
    def tree_unflatten(cls, type_: ListType, children: Sequence[Any]) -> RecordList:
        """Return the list of these parts."""
        return cls(children, type_)

    def __repr__(self) -> str:
        return f"{self.list_type.type.__name__} of a record"

    @property
    def which(self) -> Value:
        """The number of the column, among several."""
        return self.parts[2]

    @property
    def length(self) -> Index:
        """The number of elements of the list."""
        self._require_present("TypeError", "object of type 'NoneType' has no len()")
        return number(self.parts[1])

    def _require_present(self, exception: str, message: str) -> None:
        if self.list_type.optional:
            require(self.parts[1] >= 0, exception, message)

    def is_none(self) -> Value:
        """Return whether this is None."""
        return number(self.parts[1] < 0) if self.list_type.optional else False

    def __bool__(self) -> bool:
        return bool(self.parts[1] > 0)

    def __getattr__(self, name: str) -> Value:
        if name.startswith("__") or not hasattr(self.list_type.type, name):
            raise AttributeError(f"'{self.list_type.type.__name__}' object has no attribute '{name}'")
        raise self._changed(f"`{name}` of a list of a record of packed objects is called")

    def __setitem__(self, index: Index, value: Value) -> None:
        raise self._changed("an element of a list of a record of packed objects is assigned")

    def __delitem__(self, index: Index) -> None:
        raise self._changed("an element of a list of a record of packed objects is deleted")

    def _changed(self, what: str) -> WantsCopies:
        return WantsCopies(what, frozenset({self.list_type.table}))

    def __len__(self) -> int:
        raise Refusal(
            "PCB320",
            "the length of a list of a record is a value of the lane",
            helps=("write `len(xs)` in the batched function itself",),
        )

    def __getitem__(self, index: Index) -> Value:
        self._require_present("TypeError", "'NoneType' object is not subscriptable")
        if isinstance(index, slice):
            raise Refusal("PCB320", "a list of a record cannot be sliced", helps=("go over `range(a, b)`: `xs[k]`",))
        length, name = self.parts[1], self.list_type.type.__name__
        known = isinstance(index, int)
        place = (
            index if known and index >= 0 else index + length if known else jnp.where(index < 0, index + length, index)
        )
        require((place >= 0) & (place < length), "IndexError", f"{name} index out of range")
        return self.element(place)

    def __iter__(self) -> Value:
        raise Refusal(
            "PCB320",
            "the length of a list of a record is a value of the lane",
            helps=("write a `for` statement in the batched function itself",),
        )

    def element(self, index: Index) -> Value:
        """Return the element at an index that is known to be in the list."""
        type_ = self.list_type
        columns = columns_of(type_.table)
        values = [
            value(kind.element, columns, column + 2, self.parts[0] + index, type_.table, type_.schema)
            for kind, column in type_.sources
        ]
        merged = values[-1]
        for k in range(len(values) - 2, -1, -1):
            merged = either(self.which == k, values[k], merged, "the element")
        return merged
