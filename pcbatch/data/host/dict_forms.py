"""Dicts and sets of lanes in the results of a call: `Dicts` and `Sets`, made for reading."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator
from typing import Any, ClassVar

import jax
import numpy as np

from pcbatch.data.columns import Unset, room
from pcbatch.data.host.host_forms import OfLanes, register
from pcbatch.data.mappings.entries import Entries
from pcbatch.data.mappings.lane_dict import LaneDict
from pcbatch.data.mappings.lane_set import LaneSet
from pcbatch.data.members import is_member
from pcbatch.data.optional import Optional
from pcbatch.data.pytree_node import pytree_node
from pcbatch.data.rows import Rows
from pcbatch.data.sequences.lane_deque import LaneDeque
from pcbatch.data.sequences.lane_tuple import LaneTuple
from pcbatch.data.texts.lane_bytes import LaneBytes
from pcbatch.data.texts.lane_text import LaneText


class _Tables(OfLanes):
    """The dicts or sets of all lanes, one for each; a pytree of JAX.

    Attributes:
        table: the hash tables, whose arrays have the lanes along their first axis; None if nothing was ever stored.
        lengths: int32[lanes], the number of entries of each; negative for a lane that has failed.
    """

    __slots__ = ("lengths", "table")
    content = "table"
    kind: ClassVar[type]

    def __init__(self, table: Any, lengths: Any) -> None:
        self.table, self.lengths = table, lengths

    def _of_lane(self, lane: int, length: int) -> Any:
        return self._read(None if self.table is None else jax.tree.map(lambda leaf: np.asarray(leaf[lane]), self.table))

    def __iter__(self) -> Iterator[Any]:
        return iter(self.tolist())

    def tolist(self) -> list[Any]:
        """Return Python's own dicts or sets, one for each lane; None for a lane that has failed."""
        failed = np.asarray(self.lengths) < 0
        table = jax.tree.map(np.asarray, self.table)
        return [
            None if failed[k] else self._read(jax.tree.map(lambda leaf, k=k: leaf[k], table)) for k in range(len(self))
        ]

    @classmethod
    def _read(cls, table: Any) -> Any:
        """The dict or set of one table; None is a table without entries."""
        if table is None:
            return cls.kind([])
        buckets, columns = np.nonzero(table.stamps >= 0)
        order = np.argsort(table.stamps[buckets, columns])
        return cls.kind([cls._entry(table, (buckets[k], columns[k])) for k in order])

    @staticmethod
    def _entry(table: Any, place: tuple[Any, ...]) -> Any:
        raise NotImplementedError


@pytree_node("table", "lengths")
class Dicts(_Tables):
    """The dicts of all lanes, one for each; `tolist()` gives Python's own."""

    name, kind = "dict", dict

    @staticmethod
    def _entry(table: Any, place: tuple[Any, ...]) -> Any:
        return element_of(table.keys, place), element_of(table.values, place)


@pytree_node("table", "lengths")
class Sets(_Tables):
    """The sets of all lanes, one for each; `tolist()` gives Python's own."""

    name, kind = "set", set

    @staticmethod
    def _entry(table: Any, place: tuple[Any, ...]) -> Any:
        return element_of(table.keys, place)


@pytree_node("table", "lengths")
class Lists(_Tables):
    """The lists of all lanes, one for each, in which there are dicts, sets or deques; `tolist()` gives Python's own."""

    kind = list

    @classmethod
    def _read(cls, table: Any) -> Any:
        return element_of(table, ())


def sequence_of(rows: Rows, elements: list[Any]) -> list[Any] | tuple[Any, ...] | str | bytes:
    """Return the value of Python for a list, a tuple or a text of a lane, given its elements (of a text, the codes)."""
    match rows:
        case LaneText():
            return "".join(map(chr, elements))
        case LaneBytes():
            return bytes(elements)
        case LaneTuple():
            return tuple(elements)
    return elements


def element_of(columns: Any, place: tuple[Any, ...]) -> Any:
    """Return the element at a place of columns, which are on the host, as a value of Python."""
    if isinstance(columns, Entries):
        form = Sets if isinstance(columns, LaneSet) else Dicts
        return form._read(None if columns.table is None else jax.tree.map(lambda leaf: leaf[place], columns.table))
    if isinstance(columns, LaneDeque):
        length, start = map(int, columns.state[place][:2])
        size = room(columns.columns, len(place)) or 1
        return deque(element_of(columns.columns, (*place, (start + k) % size)) for k in range(length))
    if isinstance(columns, Rows):
        count = 0 if isinstance(columns.columns, Unset) else int(columns.length[place])
        return sequence_of(columns, [element_of(columns.columns, (*place, k)) for k in range(count)])
    if isinstance(columns, Optional):
        return element_of(columns.value, place) if columns.present[place] else None
    if isinstance(columns, dict):
        return {key: element_of(part, place) for key, part in columns.items()}
    children, tree = jax.tree.flatten(columns, is_leaf=lambda part: part is not columns)
    if len(children) == 1 and children[0] is columns:
        value = columns[place]
        return value.item() if value.shape == () else value
    element = jax.tree.unflatten(tree, [element_of(child, place) for child in children])
    return element.tolist() if is_member(element) else element


def _form(kind: type[_Tables]) -> Callable[[Entries], _Tables]:
    def form(value: Entries) -> _Tables:
        return kind(value.table, value.none if value.table is None else value.table.count)

    return form


def holds_tables(rows: Rows) -> bool:
    """Return whether the elements of a list are, or hold, dicts, sets or deques."""
    inside = jax.tree.leaves(rows.columns, is_leaf=lambda part: isinstance(part, Entries | LaneDeque))
    return any(isinstance(part, Entries | LaneDeque) for part in inside)


register(LaneDict, _form(Dicts))
register(LaneSet, _form(Sets))
