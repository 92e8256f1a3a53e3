"""The columns of packed objects: the values of one field of all records of a class become arrays."""

from __future__ import annotations

import enum
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import chain
from typing import Any

import jax
import ml_dtypes
import numpy as np

from pcbatch.data.capacity import rounded
from pcbatch.data.objects import schema
from pcbatch.data.objects.schema import NONE, Kind, Maybe, Member, Nothing, Number, Pointer, is_record
from pcbatch.data.objects.walk import Found, Values

Array = np.ndarray[Any, Any]
NUMBERS = (bool, int, float, complex)
RECORDS_HELP = "make the values of a field all records, all numbers, all lists or all members of one enumeration"


class Fault(Exception):
    """A value of a field that cannot be packed: the value at `place` of those given."""

    def __init__(self, place: int, title: str, help: str) -> None:
        super().__init__(title)
        self.place, self.title, self.help = place, title, help


@dataclass(slots=True)
class Numbering:
    """The numbers of records: `number[place]` for the place of a record in `Found.order`, and -1 at the end for None.

    `class_of` gives the position of a class among the classes, `kinds` that of the class of each record in its place.
    """

    found: Found
    class_of: dict[type, int]
    kinds: Array
    number: Array


def table_columns(numbering: Numbering, values: Values, rows: int) -> tuple[Kind, list[Array]]:
    """Return the kind of a field of a class and its columns of `rows` rows. Raises Fault for a value that does not fit.

    `values` has its values in all records of the class.
    """
    pieces = values.pieces
    if not all(isinstance(piece, list) for piece in pieces):
        pieces = [_numbers_of(numbering.found, piece) for piece in pieces]
        if all(isinstance(piece, np.ndarray) for piece in pieces):
            places = np.concatenate(pieces)
            of_records = places[places >= 0]
            classes = tuple(np.flatnonzero(np.bincount(numbering.kinds[of_records])).tolist())
            return Pointer(classes, len(of_records) < len(places)), [_padded(numbering.number[places], rows, NONE)]
        order = [*numbering.found.order, None]
        pieces = [[order[k] for k in piece.tolist()] if isinstance(piece, np.ndarray) else piece for piece in pieces]
    return field_columns(numbering, list(chain.from_iterable(pieces)), rows)


def _numbers_of(found: Found, piece: Any) -> Any:
    """The numbers of records for a list of them; the list itself if it holds anything else."""
    if isinstance(piece, np.ndarray) or not set(map(type, piece)) <= {*found.records, type(None)}:
        return piece
    return np.fromiter(map(found.places.__getitem__, map(id, piece)), np.int64, len(piece))


def field_columns(numbering: Numbering, values: Sequence[Any], rows: int) -> tuple[Kind, list[Array]]:
    """Return the kind of a field and its columns of `rows` rows. Raises Fault for a value that does not fit."""
    kinds = set(map(type, values))
    optional = type(None) in kinds
    kinds.discard(type(None))
    if not kinds:
        return Nothing(), []
    if all(kind in numbering.class_of for kind in kinds):
        return _references(numbering, values, rows, kinds, optional)
    if kinds <= {list, tuple}:
        return _sequences(numbering, values, rows, kinds, optional)
    odd = _odd(values, kinds)
    if odd is not None:
        raise odd
    if optional:
        return _maybe(numbering, values, rows)
    only = next(iter(kinds))
    if issubclass(only, enum.Enum) and not issubclass(only, int):
        members: dict[Any, int] = {member: k for k, member in enumerate(only)}
        numbers = [members.get(value, NONE) for value in values]
        if NONE in numbers:
            raise Fault(numbers.index(NONE), "this combines several members of an enumeration", "use an `enum.IntFlag`")
        return Member(only), [_padded(np.array(numbers, np.int32), rows)]
    return _numbers(values, rows, kinds)


def _maybe(numbering: Numbering, values: Sequence[Any], rows: int) -> tuple[Kind, list[Array]]:
    """Numbers of which some are None, in whose place any of the others stands."""
    present = np.fromiter((value is not None for value in values), bool, len(values))
    some = values[int(present.argmax())]
    element, columns = field_columns(numbering, [some if value is None else value for value in values], rows)
    assert isinstance(element, Number | Member)
    return Maybe(element), [_padded(present, rows), *columns]


def _odd(values: Sequence[Any], kinds: set[type]) -> Fault | None:
    """The fault of the first value that does not fit the others, or that nothing can be made of."""
    enums = {kind for kind in kinds if issubclass(kind, enum.Enum) and not issubclass(kind, int)}
    numeric = {kind for kind in kinds if issubclass(kind, NUMBERS) or _is_array(kind)}
    unknown = kinds - enums - numeric
    if unknown:
        place, kind = next((k, type(v)) for k, v in enumerate(values) if type(v) in unknown)
        if is_record(kind) or kind in (list, tuple):
            return Fault(place, f"this is a {kind.__name__}, and other objects have a number there", RECORDS_HELP)
        help = "leave the field out of the class, or keep a number in its place, such as its position in a table"
        return Fault(place, f"this is a {kind.__name__}", help)
    if enums and len(kinds) > 1:
        first = next(type(v) for v in values if v is not None)
        place, kind = next((k, type(v)) for k, v in enumerate(values) if v is not None and type(v) is not first)
        return Fault(place, f"this is a {kind.__name__}, and other objects have a {first.__name__} there", RECORDS_HELP)
    if bool in kinds and len(kinds) > 1:
        first = next(type(v) for v in values if v is not None)
        place = next(k for k, v in enumerate(values) if v is not None and type(v) is not first)
        return Fault(place, "this field holds both bools and other numbers", "convert them all: `bool(x)` or `int(x)`")
    return None


def _is_array(kind: type) -> bool:
    return issubclass(kind, np.ndarray | np.generic | jax.Array)


def _references(
    numbering: Numbering, values: Sequence[Any], rows: int, kinds: set[type], optional: bool
) -> tuple[Kind, list[Array]]:
    places = numbering.found.places
    found = np.fromiter(map(places.__getitem__, map(id, values)), np.int64, len(values))
    classes = tuple(sorted(numbering.class_of[kind] for kind in kinds))
    return Pointer(classes, optional), [_padded(numbering.number[found], rows, NONE)]


def _sequences(
    numbering: Numbering, values: Sequence[Any], rows: int, kinds: set[type], optional: bool
) -> tuple[Kind, list[Array]]:
    if len(kinds) > 1:
        first = next(type(v) for v in values if v is not None)
        place = next(k for k, v in enumerate(values) if v is not None and type(v) is not first)
        raise Fault(place, "this field holds both lists and tuples", "convert them all: `tuple(xs)`")
    if kinds == {tuple} and not optional and _is_fixed(values):
        return _fixed(numbering, values, rows)
    lengths = np.fromiter((NONE if v is None else len(v) for v in values), np.int64, len(values))
    ends = np.cumsum(np.maximum(lengths, 0))
    items = list(chain.from_iterable(v for v in values if v is not None))
    room = rounded(len(items))
    try:
        element, columns = field_columns(numbering, items, room)
    except Fault as fault:
        raise Fault(int(np.searchsorted(ends, fault.place, "right")), fault.title, fault.help) from None
    starts = _padded((ends - np.maximum(lengths, 0)).astype(np.int32), rows)
    kind = schema.Sequence(element, room, next(iter(kinds)), optional)
    return kind, [starts, _padded(lengths.astype(np.int32), rows), *columns]


def _is_fixed(values: Sequence[Any]) -> bool:
    """Whether tuples are like points: of one length, and made of numbers."""
    if len(set(map(len, values))) > 1 or not values[0]:
        return False
    return all(issubclass(kind, NUMBERS) or _is_array(kind) for v in values for kind in map(type, v))


def _fixed(numbering: Numbering, values: Sequence[Any], rows: int) -> tuple[Kind, list[Array]]:
    parts = [field_columns(numbering, part, rows) for part in zip(*values, strict=True)]
    return schema.Fixed(tuple(kind for kind, _ in parts)), [column for _, columns in parts for column in columns]


def _numbers(values: Sequence[Any], rows: int, kinds: set[type]) -> tuple[Kind, list[Array]]:
    if any(map(_is_array, kinds)):
        return _arrays(values, rows)
    only = next(iter(kinds)) if len(kinds) == 1 else None
    base = bool if only is bool else next(k for k in (complex, float, int) if any(issubclass(x, k) for x in kinds))
    dtype = jax.dtypes.canonicalize_dtype(base)
    try:
        array = np.array(values, np.dtype(base))
    except OverflowError:
        raise Fault(next(k for k, v in enumerate(values) if not -(2**63) <= v < 2**63), *_too_large(dtype)) from None
    if base is int:
        info = np.iinfo(dtype)
        outside = (array < info.min) | (array > info.max)
        if outside.any():
            raise Fault(int(outside.argmax()), *_too_large(dtype))
    python = only if only in NUMBERS else base if only is not None else None
    return Number(str(dtype), (), python), [_padded(array.astype(dtype), rows)]


def _too_large(dtype: Any) -> tuple[str, str]:
    return f"this number does not fit {dtype}, JAX's default integer", "switch `jax_enable_x64` on, or use a float"


def _arrays(values: Sequence[Any], rows: int) -> tuple[Kind, list[Array]]:
    arrays = [np.asarray(value) for value in values]
    shape = arrays[0].shape
    for place, array in enumerate(arrays):
        if array.shape != shape:
            title = f"this array has the shape {array.shape}, and that of another object {shape}"
            raise Fault(place, title, "pad the arrays to one shape, or use a list of numbers, whose length may differ")
        if not (np.issubdtype(array.dtype, np.number) or array.dtype == bool or _is_small_float(array.dtype)):
            raise Fault(place, f"an array of {array.dtype} cannot be packed", "use an array of numbers")
    stacked = np.stack(arrays)
    dtype = jax.dtypes.canonicalize_dtype(stacked.dtype)
    return Number(str(dtype), shape), [_padded(stacked.astype(dtype), rows)]


def _is_small_float(dtype: Any) -> bool:
    return dtype in (ml_dtypes.bfloat16, ml_dtypes.float8_e4m3fn, ml_dtypes.float8_e5m2)


def _padded(array: Array, rows: int, fill: int = 0) -> Array:
    padded = np.full((rows, *array.shape[1:]), fill, array.dtype)
    padded[: len(array)] = array
    return padded
