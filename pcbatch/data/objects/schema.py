"""The schema of packed objects: their classes, the kinds of their fields, and the sizes of the tables.

It is static, a part of the type of a `Packed`: a program is compiled for a schema, and runs on any tables of it.

All rows of all tables are numbered through: the row `r` of class `c` has the number `first[c] + r`, and None is -1. So
a reference is one number whatever classes it may lead to, and the class is found by comparing it with constants.
"""

from __future__ import annotations

import enum
from collections.abc import Iterator
from dataclasses import dataclass, fields, is_dataclass
from functools import cached_property
from typing import Any

NONE = -1
"""The number of None among references."""


@dataclass(frozen=True, slots=True)
class Number:
    """A kind of field: numbers or arrays of one shape and dtype.

    Attributes:
        dtype: of the column.
        shape: of each value.
        python: the type of Python's numbers that they are; None for arrays, and for numbers of several types.
    """

    dtype: str
    shape: tuple[int, ...] = ()
    python: type | None = None


@dataclass(frozen=True, slots=True)
class Member:
    """A kind of field: members of an enumeration, by their position in it."""

    enum: type[enum.Enum]


@dataclass(frozen=True, slots=True)
class Pointer:
    """A kind of field: references to records of some classes, which are numbers of `Schema.classes`."""

    classes: tuple[int, ...]
    optional: bool


@dataclass(frozen=True, slots=True)
class Sequence:
    """A kind of field: lists or tuples of any length, the elements of all of them in columns of their own.

    The number of elements is padded to `room`. None has the length -1.
    """

    element: Kind
    room: int
    type: type
    optional: bool


@dataclass(frozen=True, slots=True)
class Fixed:
    """A kind of field: tuples of one length, whose elements have kinds of their own."""

    items: tuple[Kind, ...]


@dataclass(frozen=True, slots=True)
class Maybe:
    """A kind of field: values of another kind, or None. A column of bools says which."""

    element: Number | Member


@dataclass(frozen=True, slots=True)
class Nothing:
    """A kind of field: always None."""


Kind = Number | Member | Maybe | Pointer | Sequence | Fixed | Nothing


def width(kind: Kind) -> int:
    """Return the number of columns of a kind."""
    match kind:
        case Sequence(element=element):
            return 2 + width(element)
        case Fixed(items=items):
            return sum(map(width, items))
        case Maybe():
            return 2
        case Nothing():
            return 0
        case _:
            return 1


@dataclass(frozen=True, slots=True)
class Record:
    """One class: its fields with their kinds, and the rows of its table, which are padded."""

    cls: type
    fields: tuple[tuple[str, Kind], ...]
    rows: int


@dataclass(frozen=True)
class Schema:
    """All classes of packed objects."""

    classes: tuple[Record, ...]

    @cached_property
    def first(self) -> tuple[int, ...]:
        """The number of the first row of each class, and one past the last row of all."""
        first = [0]
        for record in self.classes:
            first.append(first[-1] + record.rows)
        return tuple(first)

    @cached_property
    def _places(self) -> dict[tuple[int, str], tuple[Kind, int]]:
        places, column = {}, 0
        for number, record in enumerate(self.classes):
            for name, kind in record.fields:
                places[number, name] = kind, column
                column += width(kind)
        return places

    def place(self, cls: int, name: str) -> tuple[Kind, int] | None:
        """Return the kind of a field and its first column; None if the class lacks it."""
        return self._places.get((cls, name))

    @cached_property
    def columns(self) -> tuple[str, ...]:
        """The name of each column, for messages and programs: an identifier."""
        return tuple(name for record in self.classes for name in _names(record))

    @cached_property
    def _hash(self) -> int:
        return hash(self.classes)

    def __hash__(self) -> int:
        return self._hash  # it is looked up in every call


def _names(record: Record) -> Iterator[str]:
    for name, kind in record.fields:
        stem = f"{record.cls.__name__}_{name}"
        names = list(_parts(kind))
        yield from (f"{stem}{part}" for part in names)


def _parts(kind: Kind) -> Iterator[str]:
    match kind:
        case Sequence(element=element):
            yield from ("_start", "_length", *(f"_items{part}" for part in _parts(element)))
        case Fixed(items=items):
            yield from (f"_{k}{part}" for k, item in enumerate(items) for part in _parts(item))
        case Maybe():
            yield from ("_present", "")
        case Nothing():
            return
        case _:
            yield ""


ATOMS = (bool, int, float, complex, type(None))


def is_record(cls: type) -> bool:
    """Return whether objects of a class are records: named tuples, dataclasses, plain objects with attributes."""
    if cls.__module__.partition(".")[0] in ("builtins", "numpy", "jax", "jaxlib", "ml_dtypes", "types", "functools"):
        return False
    if issubclass(cls, enum.Enum | type) or hasattr(cls, "__array__"):
        return False
    if issubclass(cls, tuple):
        return hasattr(cls, "_fields")
    return not issubclass(cls, str | bytes | int | float | complex | list | dict | set | frozenset)


def field_names(cls: type, example: Any) -> tuple[str, ...]:
    """Return the fields of a class; the attributes of `example`, an object of it, if the class declares none."""
    named = getattr(cls, "_fields", None)
    if issubclass(cls, tuple) and named is not None:
        return tuple(named)
    if is_dataclass(cls):
        return tuple(field.name for field in fields(cls))
    slots = [name for base in reversed(cls.__mro__) for name in _slots(base)]
    return tuple(dict.fromkeys([*slots, *getattr(example, "__dict__", ())]))


def _slots(cls: type) -> tuple[str, ...]:
    slots = cls.__dict__.get("__slots__", ())
    slots = (slots,) if isinstance(slots, str) else tuple(slots)
    return tuple(name for name in slots if name not in ("__dict__", "__weakref__"))
