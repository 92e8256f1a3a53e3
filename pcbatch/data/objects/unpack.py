"""Objects made of their rows again, each once, with the sharing and the cycles that they had.

An object that can change is made empty, and gets its attributes later, as a list gets its elements. One that cannot, a
named tuple, is made after those that it holds: there is no cycle of such alone.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np

from pcbatch.data.objects import schema
from pcbatch.data.objects.boxes.classes import BoxValue, empty_of, python_value
from pcbatch.data.objects.schema import Fixed, Kind, Maybe, Member, Nothing, Number, Pointer
from pcbatch.data.objects.tuples.classes import is_plain, plain_value

if TYPE_CHECKING:
    from pcbatch.data.objects.packed import Packed


class Objects:
    """Makes the objects of records, by the numbers of these."""

    def __init__(self) -> None:
        self.known: dict[int, Any] = {}
        self._later: list[tuple[Callable[[Any], Any], Any]] = []  # what takes a value when all objects of it are there

    def number(self, value: Any) -> int | None:
        """Return the number of the record that a value refers to, negative for None; None for other values."""
        raise NotImplementedError

    def row(self, number: int) -> tuple[type, Sequence[str], list[Any]]:
        """Return the class of a record, and the names and values of its fields, with references in place of objects."""
        raise NotImplementedError

    def of(self, value: Any) -> Any:
        """Return a value of Python with objects in place of references."""
        made = self._with_objects(value)
        while self._later:
            put, part = self._later.pop()
            put(self._with_objects(part))
        return made

    def _with_objects(self, value: Any) -> Any:
        waiting = self._unknown(value)
        while waiting:  # a chain of a thousand objects is no recursion of a thousand calls
            if waiting[-1] in self.known:
                waiting.pop()
                continue
            cls, names, fields = self.row(waiting[-1])
            if issubclass(cls, BoxValue):
                held = python_value(cls, fields)
                self.known[waiting.pop()], put = empty_of(held)
                self._later.append((put, type(held)(held)))
            elif not is_plain(cls):
                made: Any
                made = self.known[waiting.pop()] = object.__new__(cls)
                puts = (partial(object.__setattr__, made, name) for name in names)
                self._later += zip(puts, fields, strict=True)
            elif needed := [number for field in fields for number in self._unknown(field)]:
                waiting += needed
            else:
                self.known[waiting.pop()] = plain_value(cls, [self._made(part) for part in fields])
        return self._made(value)

    def _unknown(self, value: Any) -> list[int]:
        """The numbers of records in a value that have no object yet; lists get their elements later."""
        number = self.number(value)
        if number is not None:
            return [number] if number >= 0 and number not in self.known else []
        return [found for part in _parts(value) for found in self._unknown(part)]

    def _made(self, value: Any) -> Any:
        number = self.number(value)
        if number is not None:
            return self.known[number] if number >= 0 else None
        match value:
            case list():
                made: list[Any] = []
                self._later.append((made.extend, tuple(value)))
                return made
            case dict():
                return {key: self._made(part) for key, part in value.items()}
            case tuple() if hasattr(value, "_make"):
                return value._make(map(self._made, value))
            case tuple() | deque():
                return type(value)(map(self._made, value))
        return value


def _parts(value: Any) -> Iterator[Any]:
    """The parts of a value of Python that are there when it is made."""
    match value:
        case dict():
            return iter(value.values())
        case tuple() | deque():
            return iter(value)
    return iter(())


def unpack(packed: Packed) -> Any:
    """Return the roots of packed objects as objects."""
    ids = np.asarray(packed.ids)
    objects = _PackedObjects(packed)
    nested: Any = [objects.of(_Row(number)) for number in ids.reshape(-1)]
    for size in reversed(ids.shape[1:]):
        nested = [nested[k : k + size] for k in range(0, len(nested), size)]
    return nested if ids.ndim else nested[0]


class _Row(int):
    """The number of a record."""


class _PackedObjects(Objects):
    def __init__(self, packed: Packed) -> None:
        super().__init__()
        self.schema = packed.schema
        self.columns = [np.asarray(column) for column in packed.columns]

    def number(self, value: Any) -> int | None:
        return value if isinstance(value, _Row) else None

    def row(self, number: int) -> tuple[type, Sequence[str], list[Any]]:
        cls = int(np.searchsorted(self.schema.first, number, "right")) - 1
        record = self.schema.classes[cls]
        names = [name for name, _ in record.fields]
        places = [place for name in names if (place := self.schema.place(cls, name)) is not None]
        return record.cls, names, [self._value(*place, number - self.schema.first[cls]) for place in places]

    def _value(self, kind: Kind, column: int, row: int) -> Any:
        match kind:
            case Nothing():
                return None
            case Number(shape=shape, python=python):
                cell = self.columns[column][row]
                if shape:
                    return np.array(cell)
                return cell if python is None else python(cell)
            case Maybe(element=element):
                return self._value(element, column + 1, row) if self.columns[column][row] else None
            case Member(enum=enum):
                return list(enum)[int(self.columns[column][row])]
            case Pointer():
                return _Row(self.columns[column][row])
            case Fixed(items=items):
                parts = []
                for item in items:
                    parts.append(self._value(item, column, row))
                    column += schema.width(item)
                return tuple(parts)
            case schema.Sequence(element=element, type=type_):
                start, length = int(self.columns[column][row]), int(self.columns[column + 1][row])
                if length < 0:
                    return None
                return type_(self._value(element, column + 2, k) for k in range(start, start + length))
