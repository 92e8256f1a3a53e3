"""Boxes in a lane: how they are made, and values with what is in the boxes in their places."""

from __future__ import annotations

import itertools
from collections import deque
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import jax
import jax.numpy as jnp

from pcbatch.data.columns import Unset
from pcbatch.data.container import Container
from pcbatch.data.mappings.ordered_keys import ordered, plain
from pcbatch.data.mappings.stored_table import StoredTable
from pcbatch.data.objects.boxes.classes import BoxValue, fields_of
from pcbatch.data.objects.boxes.late_items import require_items
from pcbatch.data.objects.made import heap_lists, recorded
from pcbatch.data.objects.made_classes import MadeClass
from pcbatch.data.objects.reference import Ref
from pcbatch.data.optional import Optional
from pcbatch.data.origins import Origin
from pcbatch.data.rows import Rows
from pcbatch.data.sequences.lane_list import LaneList
from pcbatch.data.stored import is_part, parts
from pcbatch.data.texts.text import Text
from pcbatch.data.values import Value
from pcbatch.errors import Refusal


def made_class(cls: type[BoxValue]) -> MadeClass:
    """Return a class of boxes as that of records made in lanes."""
    return MadeClass(cls, fields_of(cls.pcbatch_keys))


def boxed(cls: type[BoxValue], *values: Value) -> Value:
    """Return a new box that holds a value, or those of a dict by name."""
    if not cls.pcbatch_keys and not all(map(has_identity, values)):  # a slice of an array is a view, and no copy
        raise Refusal("PCB304", f"what is made at {cls.pcbatch_place[1]} is no list, dict or set")
    made: Any = object.__new__(cls)
    for name, value in zip(fields_of(cls.pcbatch_keys), values, strict=True):
        setattr(made, name, value)
    return recorded(made)


def boxed_by_name(cls: type[BoxValue], items: Value) -> Value:
    """Return a new box of the values of a dict by name, a copy of another one."""
    keys = set(cls.pcbatch_keys)
    if not isinstance(items, dict) or not keys - cls.pcbatch_late <= set(items) <= keys:
        title = f"a copy at {cls.pcbatch_place[1]} is of a dict with other keys"
        raise Refusal("PCB304", title, helps=("write the copy as a display, with all keys",))
    return boxed(cls, *(items.get(key) for key in cls.pcbatch_keys))


def items_by_name(box: Value) -> dict[str, Value]:
    """Return the dict by name that a box holds, as it is by now."""
    cls: Any = box.pcbatch_type.types[0] if isinstance(box, Ref) else type(box)
    keys = cls.pcbatch_keys
    return {key: getattr(box, field) for key, field in zip(keys, fields_of(keys), strict=True)}


def has_identity(value: Value) -> bool:
    """Return whether a value is a list, dict or set, which can be in a box."""
    return isinstance(value, Container | list | dict | set | tuple | deque) and not isinstance(value, Text)


def is_box(value: Value) -> bool:
    """Return whether a value is a box, or a reference to one."""
    return isinstance(value, Ref) and any(issubclass(cls, BoxValue) for cls in value.pcbatch_type.types)


def unboxed(value: Value) -> Value:
    """Return a value with what is in each box in its place, as it is by now."""
    if isinstance(value, Ref):
        (made,), _ = _unboxed((value,), (Origin.ARRAY,), ())
        return plain(made)
    if isinstance(value, Rows | StoredTable):
        return _container(value, ())
    if isinstance(value, Optional):
        return Optional(unboxed(value.value), value.present)
    if type(value) in (tuple, list):
        return type(value)(unboxed(part) for part in value)
    if isinstance(value, tuple) and hasattr(value, "_make"):
        return value._make(map(unboxed, value))
    if type(value) is dict:
        return {key: unboxed(part) for key, part in value.items()}
    parts, tree = jax.tree.flatten(value, is_leaf=_may_hold)
    return jax.tree.unflatten(tree, list(map(unboxed, parts))) if any(map(_may_hold, parts)) else value


def _may_hold(part: Value) -> bool:
    return isinstance(part, Ref | Rows | StoredTable | Optional)


def _container(value: Value, around: tuple[type, ...]) -> Value:
    """Return a container whose elements are what is in the boxes that were its elements."""
    if isinstance(value, Rows):
        columns, origins = _unboxed(value.columns, value.origins, around)
        return value.with_data(columns, value.state, origins)
    table = value.table
    if table is None or table.values is None:
        return value
    values, origins = _unboxed(table.values, value.value_origins, around)
    new = value.with_table(replace(table, values=values))
    new.value_origins = origins
    return new


def _unboxed(columns: Value, origins: Sequence[Origin], around: tuple[type, ...]) -> tuple[Value, tuple[Origin, ...]]:
    """Return columns of elements, and their origins, with columns of what is in boxes; `around` are classes of boxes
    in which they are."""
    leaves, tree = jax.tree.flatten(columns, is_leaf=lambda part: is_part(part) or isinstance(part, Ref))
    made, new_origins = list[Value](), list[Origin]()
    for leaf, origin in zip(leaves, origins, strict=True):
        part, mine = _part(leaf, origin, around)
        made.append(part)
        new_origins += mine
    return jax.tree.unflatten(tree, made), tuple(new_origins)


def _part(leaf: Value, origin: Origin, around: tuple[type, ...]) -> tuple[Value, Sequence[Origin]]:
    if isinstance(leaf, Rows | StoredTable):
        return _container(leaf, around), (origin,)
    if isinstance(leaf, Optional):
        value, inside = _unboxed(leaf.value, (origin,), around)
        return Optional(value, leaf.present), (origin,) if value is leaf.value else inside[:1]
    if not is_box(leaf) or leaf.pcbatch_type.types[0] in around:
        return leaf, (origin,)
    cls = leaf.pcbatch_type.classes[0]
    rows, count = heap_lists()[cls], len(leaf.pcbatch_type.schema.classes)
    if isinstance(rows.columns, Unset):  # there is no box of the class
        return LaneList.from_list([]), (origin,)
    places = jnp.maximum(jnp.asarray(leaf.pcbatch_id), 0) // count
    fields, origins = _fields(leaf.pcbatch_type.types[0], rows)
    column = jax.tree.map(lambda part: part[places], fields)
    value, inside = _unboxed(column, origins, (*around, leaf.pcbatch_type.types[0]))
    if leaf.pcbatch_type.optional:
        return Optional(value, jnp.asarray(leaf.pcbatch_id) >= 0), (origin,)
    return value, inside


def _fields(cls: type[BoxValue], rows: Rows) -> tuple[Value, tuple[Origin, ...]]:
    """The column of what boxes of a class hold, and its origins."""
    if not cls.pcbatch_keys:
        return rows.columns[0], rows.origins
    ends = list(itertools.accumulate(len(parts(column)) for column in rows.columns))
    mine = dict(zip(cls.pcbatch_keys, itertools.pairwise((0, *ends)), strict=True))
    place = cls.pcbatch_place[1]
    columns = (
        require_items(column, rows.length, key, place) if key in cls.pcbatch_late else column
        for key, column in zip(cls.pcbatch_keys, rows.columns, strict=True)
    )
    found = ordered(dict(zip(cls.pcbatch_keys, columns, strict=True)))
    return found, tuple(one for key in sorted(mine) for one in rows.origins[slice(*mine[key])])
