"""Copies of packed objects, one for each lane, where a program changes them.

A lane gets the objects that its roots lead to, as records of the lane: a `Made`, built on the host from the tables. So
there is one mechanism for objects that change, wherever they come from.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import cached_property
from typing import Any

import jax
import numpy as np

from pcbatch.data.capacity import rounded
from pcbatch.data.columns import Unset
from pcbatch.data.host.host_forms import replaced
from pcbatch.data.members import MemberValue
from pcbatch.data.objects import schema as kinds
from pcbatch.data.objects.columns import Array
from pcbatch.data.objects.made import CopiedSchema
from pcbatch.data.objects.made_classes import MadeClass, declares_fields
from pcbatch.data.objects.made_results import WithHeap
from pcbatch.data.objects.packed import check_apart
from pcbatch.data.objects.ref_type import MADE_TABLE, RefType
from pcbatch.data.objects.reference import Ref
from pcbatch.data.objects.schema import Fixed, Kind, Maybe, Member, Nothing, Number, Pointer, Record, Schema
from pcbatch.data.objects.tables import Table
from pcbatch.data.optional import Optional
from pcbatch.data.origins import Origin
from pcbatch.data.sequences.lane_list import LaneList
from pcbatch.data.sequences.lane_tuple import LaneTuple


def is_copied(value: object, tables: frozenset[int]) -> bool:
    """Return whether a value is a reference into one of some tables."""
    return isinstance(value, Ref) and value.pcbatch_type.table in tables


def with_copies(
    values: dict[str, Any], parts: Sequence[tuple[Ref, bool]], tables: list[Table], which: frozenset[int]
) -> dict[str, Any]:
    """Return arguments with records of the lane in place of references into tables, which become empty.

    Args:
        values: the arguments.
        parts: the references into these tables among them, in order, and whether they have lanes.
        tables: all tables of the call.
        which: the numbers of those that the program changes.
    """
    check_apart(tables, which)
    copies = _Copies(parts, tables, which)
    for table in which:
        tables[table] = Table((), Schema(()))
    # All records are in the heap that comes with one part, with lanes if there are any: objects may be shared by parts.
    first = next((k for k, (_, mapped) in enumerate(parts) if mapped), 0)
    made = {
        id(ref): WithHeap(new, copies.rows if k == first else (), copies.schema)
        for k, ((ref, _), new) in enumerate(zip(parts, copies.refs, strict=True))
    }
    return {name: replaced(value, lambda x: id(x) in made, lambda x: made[id(x)]) for name, value in values.items()}


class _Copies:
    """The records that the lanes' roots lead to, as rows of lists of the lane.

    A record has a number among all tables; `cells` are the numbers with those of the lanes, sorted, and `ids` the
    numbers in the heap.
    """

    def __init__(self, parts: Sequence[tuple[Ref, bool]], tables: Sequence[Table], which: frozenset[int]) -> None:
        self.tables = [tables[k] for k in sorted(which)]
        self.columns = [np.asarray(column) for table in self.tables for column in table.columns]
        sizes = [table.schema.first[-1] for table in self.tables]
        self.base = dict(zip(sorted(which), np.cumsum([0, *sizes]), strict=False))
        counts = [len(table.schema.classes) for table in self.tables]
        self._starts = dict(zip(self.base, np.cumsum([0, *counts]).tolist(), strict=False))  # the first class of each
        records = [record for table in self.tables for record in table.schema.classes]
        self.first = np.cumsum([0, *(record.rows for record in records)])
        self.schema = CopiedSchema(tuple(MadeClass(one.cls, _names(one)) for one in records))
        mapped = any(with_lanes for _, with_lanes in parts)
        roots = [(self.base[ref.pcbatch_type.table], np.asarray(ref.pcbatch_id)) for ref, _ in parts]
        roots_of = [np.where(ids < 0, -1, ids + base).astype(np.int64) for base, ids in roots]
        self._number(roots_of, [with_lanes for _, with_lanes in parts], mapped)
        self.refs = []
        for (ref, with_lanes), ids in zip(parts, roots_of, strict=True):
            lanes = np.arange(len(ids)).reshape(-1, *[1] * (ids.ndim - 1)) if with_lanes else np.int64(0)
            start = self._starts[ref.pcbatch_type.table]
            type_ = ref.pcbatch_type
            self.refs.append(self._reference(self._ids_of(lanes, ids), type_.classes, type_.optional, start))
        self.rows = tuple(self._rows(k, lead=mapped) for k in range(len(records)))

    def _number(self, roots: Sequence[Array], with_lanes: Sequence[bool], mapped: bool) -> None:
        """Find what the roots of each lane lead to; what those that all lanes share lead to comes first in each."""
        shared = self._reached([one.ravel() for one, has in zip(roots, with_lanes, strict=True) if not has], {})
        own = [one.reshape(len(one), -1) for one, has in zip(roots, with_lanes, strict=True) if has]
        lanes = len(own[0]) if mapped else 1
        found = [np.fromiter(self._reached([one[k] for one in own], shared), np.int64) for k in range(lanes)]
        lane = np.repeat(np.arange(lanes), [len(one) for one in found])
        number = np.concatenate([*found, np.zeros(0, np.int64)])
        classes = len(self.schema.classes)
        cls = np.searchsorted(self.first, number, "right") - 1
        group = lane * classes + cls
        self.counts = np.bincount(group, minlength=lanes * classes).reshape(lanes, classes).astype(np.int32)
        order = np.argsort(group, kind="stable")
        starts = np.concatenate([[0], np.cumsum(self.counts.ravel())])[:-1]
        row = np.empty(len(group), np.int64)
        row[order] = np.arange(len(group)) - starts[group[order]]
        self.members = [(lane[cls == k], row[cls == k], number[cls == k]) for k in range(classes)]
        cells = lane * self.first[-1] + number
        order = np.argsort(cells)
        self.cells, self.ids = cells[order], (row * classes + cls)[order]

    def _reached(self, roots: Sequence[Array], known: dict[int, None]) -> dict[int, None]:
        found = {**known, **dict.fromkeys(k for one in roots for k in one.tolist() if k >= 0)}
        stack, (starts, targets) = list(found), self._links
        while stack:
            number = stack.pop()
            for k in targets[starts[number] : starts[number + 1]]:
                if k not in found:
                    found[k] = None
                    stack.append(k)
        return found

    def _fields(self) -> Iterator[tuple[int, int, int, str, Kind, int]]:
        """The fields of all classes: table, the class in it and among all, name, kind and first column."""
        column = cls = 0
        for table, one in zip(self.base, self.tables, strict=True):
            for number, record in enumerate(one.schema.classes):
                for name, kind in record.fields:
                    yield table, number, cls, name, kind, column
                    column += kinds.width(kind)
                cls += 1

    @cached_property
    def _links(self) -> tuple[list[int], list[int]]:
        """The records that each one leads to: `targets[starts[number]:starts[number + 1]]`."""
        pairs = [(np.zeros(0, np.int64),) * 2]
        for table, _, cls, _, kind, column in self._fields():
            rows = np.arange(self.first[cls + 1] - self.first[cls])
            pairs += self._pairs(kind, column, rows + self.first[cls], rows, self.base[table])
        source, target = (np.concatenate(part) for part in zip(*pairs, strict=True))
        order = np.argsort(source, kind="stable")
        starts = np.searchsorted(source[order], np.arange(self.first[-1] + 1))
        return starts.tolist(), target[order].tolist()

    def _pairs(self, kind: Kind, column: int, source: Array, rows: Array, base: int) -> Iterator[tuple[Array, Array]]:
        match kind:
            case Pointer():
                ids = self.columns[column][rows]
                yield source[ids >= 0], ids[ids >= 0].astype(np.int64) + base
            case kinds.Sequence(element=element):
                starts, lengths = self.columns[column][rows], np.maximum(self.columns[column + 1][rows], 0)
                ends = np.cumsum(lengths)
                inner = np.arange(ends[-1] if len(ends) else 0) + np.repeat(starts - ends + lengths, lengths)
                yield from self._pairs(element, column + 2, np.repeat(source, lengths), inner, base)

    def _ids_of(self, lanes: Any, numbers: Array) -> Array:
        """The numbers in the heap for those of records in some lanes, and -1 for None."""
        if not len(self.cells):
            return np.full(numbers.shape, -1, np.int32)
        cells = lanes * self.first[-1] + numbers
        at = np.minimum(np.searchsorted(self.cells, cells), len(self.cells) - 1)
        return np.where((numbers >= 0) & (self.cells[at] == cells), self.ids[at], -1).astype(np.int32)

    def _reference(self, ids: Array, classes: Sequence[int], optional: bool, start: int) -> Ref:
        return Ref(ids, RefType(MADE_TABLE, self.schema, tuple(c + start for c in classes), optional))

    def _rows(self, cls: int, lead: bool) -> Any:
        """The list of the records of one class."""
        lane, row, number = self.members[cls]
        rows = np.full((len(self.counts), rounded(max(1, int(self.counts[:, cls].max(initial=0))))), -1)
        rows[lane, row] = number - self.first[cls]
        fields = {
            name: self._column(kind, column, rows, table)
            for table, _, other, name, kind, column in self._fields()
            if other == cls
        }
        columns = [fields[name] for name in self.schema.classes[cls].fields] or [
            (rows.astype(np.int8), (Origin.NUMBER,))
        ]
        made = LaneList.tree_unflatten(
            tuple(origin for _, origins in columns for origin in origins),
            (tuple(column for column, _ in columns), self.counts[:, cls]),
        )
        return made if lead else jax.tree.map(lambda leaf: leaf[0], made)

    def _column(self, kind: Kind, column: int, rows: Array, table: int) -> tuple[Any, tuple[Origin, ...]]:
        """The values of a field in rows of its table (-1 for none), lanes first, with the origins of its parts."""
        cells = self.columns[column][np.maximum(rows, 0)] if kinds.width(kind) else rows
        match kind:
            case Number(shape=shape, python=python):
                return cells, (Origin.NUMBER if python is not None and not shape else Origin.ARRAY,)
            case Member(enum=enum):
                return MemberValue(cells, enum), (Origin.ARRAY,)
            case Maybe(element=element):
                value, origins = self._column(element, column + 1, rows, table)
                return Optional(value, cells), origins
            case Pointer(classes=classes, optional=optional):
                lanes = np.arange(len(rows)).reshape(-1, *[1] * (rows.ndim - 1))
                ids = self._ids_of(lanes, np.where(cells < 0, -1, cells + self.base[table]).astype(np.int64))
                return self._reference(ids, classes, optional, self._starts[table]), (Origin.ARRAY,)
            case Fixed(items=items):
                parts = []
                for item in items:
                    parts.append(self._column(item, column, rows, table))
                    column += kinds.width(item)
                return tuple(part for part, _ in parts), tuple(origin for _, origins in parts for origin in origins)
            case Nothing():
                return None, (Origin.ARRAY,)
            case kinds.Sequence():
                return self._lists(kind, column, rows, table)

    def _lists(self, kind: kinds.Sequence, column: int, rows: Array, table: int) -> tuple[Any, tuple[Origin, ...]]:
        there = np.maximum(rows, 0)
        starts, lengths = self.columns[column][there], np.where(rows < 0, 0, self.columns[column + 1][there])
        counts = np.maximum(lengths, 0).astype(np.int32)
        most = int(counts.max(initial=0))
        columns: Any = Unset()
        origins: tuple[Origin, ...] = ()
        if most:
            at = np.arange(rounded(most))
            inner = np.where(at < counts[..., None], starts[..., None] + at, -1)
            columns, origins = self._column(kind.element, column + 2, inner, table)
        made = (LaneTuple if kind.type is tuple else LaneList).tree_unflatten(origins, (columns, counts))
        return (Optional(made, lengths >= 0) if kind.optional else made), (Origin.ARRAY,)


def _names(record: Record) -> tuple[str, ...]:
    names = tuple(name for name, _ in record.fields)
    return names if declares_fields(record.cls) else tuple(sorted(names))
