"""Objects made of their tables again, with the sharing and the cycles that they had."""

from __future__ import annotations

from typing import Any

import numpy as np

from pcbatch.records import schema
from pcbatch.records.packed import Packed
from pcbatch.records.schema import Fixed, Kind, Maybe, Member, Nothing, Number, Pointer


def unpack(packed: Packed) -> Any:
    """Return the roots of packed objects as objects."""
    ids = np.asarray(packed.ids)
    maker = _Maker(packed)
    flat = [maker.make(int(number)) for number in ids.reshape(-1)]
    nested: Any = flat
    for size in reversed(ids.shape[1:]):
        nested = [nested[k : k + size] for k in range(0, len(nested), size)]
    return nested if ids.ndim else nested[0]


class _Maker:
    """The maker of records, each of which is made once.

    A record that can change is made empty and filled later. One that cannot, a named tuple, is made after those that
    it holds: there is no cycle of such alone.
    """

    def __init__(self, packed: Packed) -> None:
        self.schema = packed.schema
        self.columns = [np.asarray(column) for column in packed.columns]
        self.made: dict[int, Any] = {}
        self.unfilled: list[int] = []

    def make(self, number: int) -> Any:
        """Return the record of a number; None for a negative one."""
        if number < 0:
            return None
        self.build(number)
        while self.unfilled:
            self.fill(self.unfilled.pop())
        return self.made[number]

    def build(self, start: int) -> None:
        """Make a record, and before it the named tuples that it needs."""
        stack = [start]
        while stack:
            number = stack[-1]
            if number in self.made:
                stack.pop()
                continue
            cls = self.class_of(number)
            if not issubclass(self.schema.classes[cls].cls, tuple):
                self.made[number] = object.__new__(self.schema.classes[cls].cls)
                self.unfilled.append(number)
                continue
            needed = [n for n in self.held(number, cls) if n not in self.made]
            if needed:
                stack += needed
                continue
            record = self.schema.classes[cls].cls
            self.made[number] = tuple.__new__(record, self.values(number, cls))
            if any(isinstance(kind, schema.Sequence) for _, kind in self.schema.classes[cls].fields):
                self.unfilled.append(number)

    def class_of(self, number: int) -> int:
        return int(np.searchsorted(self.schema.first, number, "right")) - 1

    def held(self, number: int, cls: int) -> list[int]:
        """The records that a named tuple holds, directly or in tuples; lists are filled later."""
        row = number - self.schema.first[cls]
        held: list[int] = []
        for name, kind in self.schema.classes[cls].fields:
            place = self.schema.place(cls, name)
            assert place is not None
            self._held(kind, place[1], row, held)
        return held

    def _held(self, kind: Kind, column: int, row: int, held: list[int]) -> None:
        match kind:
            case Pointer():
                held += [n for n in [int(self.columns[column][row])] if n >= 0]
            case schema.Sequence(element=element, type=type_) if type_ is tuple:
                start, length = int(self.columns[column][row]), int(self.columns[column + 1][row])
                for k in range(start, start + length):
                    self._held(element, column + 2, k, held)

    def values(self, number: int, cls: int) -> list[Any]:
        """The values of all fields; lists of records are empty as yet."""
        row = number - self.schema.first[cls]
        values = []
        for name, kind in self.schema.classes[cls].fields:
            place = self.schema.place(cls, name)
            assert place is not None
            values.append(self.value(kind, place[1], row))
        return values

    def value(self, kind: Kind, column: int, row: int) -> Any:
        """One value. A list has its elements when `fill` has been there."""
        match kind:
            case Nothing():
                return None
            case Number(shape=shape, python=python):
                cell = self.columns[column][row]
                if shape:
                    return np.array(cell)
                return cell if python is None else python(cell)
            case Maybe(element=element):
                return self.value(element, column + 1, row) if self.columns[column][row] else None
            case Member(enum=enum):
                return list(enum)[int(self.columns[column][row])]
            case Pointer():
                number = int(self.columns[column][row])
                return None if number < 0 else self.made.get(number)
            case Fixed(items=items):
                parts = []
                for item in items:
                    parts.append(self.value(item, column, row))
                    column += schema.width(item)
                return tuple(parts)
            case schema.Sequence(element=element, type=type_):
                start, length = int(self.columns[column][row]), int(self.columns[column + 1][row])
                if length < 0:
                    return None
                if type_ is list and _holds_records(element):
                    return []
                return type_(self.value(element, column + 2, k) for k in range(start, start + length))

    def fill(self, number: int) -> None:
        """Give a record that can change its attributes, and lists of a named tuple their elements."""
        cls = self.class_of(number)
        row = number - self.schema.first[cls]
        record = self.made[number]
        for k, (name, kind) in enumerate(self.schema.classes[cls].fields):
            place = self.schema.place(cls, name)
            assert place is not None
            if isinstance(record, tuple):
                if isinstance(record[k], list):
                    self.fill_list(record[k], kind, place[1], row)
                continue
            for needed in self.all_held(kind, place[1], row):
                self.build(needed)
            value = self.value(kind, place[1], row)
            if isinstance(value, list):
                self.fill_list(value, kind, place[1], row)
            object.__setattr__(record, name, value)

    def fill_list(self, target: list[Any], kind: Kind, column: int, row: int) -> None:
        """Put the records of a list into it."""
        if not isinstance(kind, schema.Sequence) or target:
            return
        for needed in self.all_held(kind, column, row):
            self.build(needed)
        start, length = int(self.columns[column][row]), int(self.columns[column + 1][row])
        for k in range(start, start + length):
            value = self.value(kind.element, column + 2, k)
            if isinstance(value, list):
                self.fill_list(value, kind.element, column + 2, k)
            target.append(value)

    def all_held(self, kind: Kind, column: int, row: int) -> list[int]:
        """All records that a value holds, those in lists as well."""
        held: list[int] = []
        if isinstance(kind, schema.Sequence):
            start, length = int(self.columns[column][row]), int(self.columns[column + 1][row])
            for k in range(start, start + length):
                held += self.all_held(kind.element, column + 2, k)
        else:
            self._held(kind, column, row, held)
        return held


def _holds_records(kind: Kind) -> bool:
    return isinstance(kind, Pointer) or (isinstance(kind, schema.Sequence) and _holds_records(kind.element))
