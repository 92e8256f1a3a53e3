"""The type that covers two dicts or sets of the lane, and values as ones of that type."""

from __future__ import annotations

from typing import Any

import jax

from pcbatch.containers.elements import join_origins, unify
from pcbatch.containers.entries import Entries
from pcbatch.containers.lane_dict import LaneDict
from pcbatch.containers.lane_set import LaneSet
from pcbatch.errors import Refusal


def is_entries(value: Any) -> bool:
    """Return whether a value is a dict or set of the lane."""
    return isinstance(value, Entries)


def covered(a: Any, b: Any) -> Entries:
    """Return a dict or set as one of the type that covers it and another.

    Args:
        a: a dict or set of the lane, or a dict that is known while compiling.
        b: likewise; only its type matters.

    Raises:
        Refusal: if there is no such type.
    """
    one, other = _of_lane(a), _of_lane(b)
    if type(one) is not type(other):
        title = f"a {one.python_name} on one way and a {other.python_name} on another"
        raise Refusal("PCB304", title, helps=("make them one kind of container",))
    if one.missing != other.missing:
        raise Refusal("PCB304", f"{_named(one)} on one way and {_named(other)} on another")
    made = one.with_table(one.table)
    if one.table is None and other.table is not None:
        made = other.copy()
        made.clear()
    made.only_added = one.only_added and other.only_added
    if one.table is None or other.table is None:
        return made
    table, theirs = one.table, other.table
    key, value = _example(theirs.keys), _example(theirs.values)
    # Capacities of values (lists in a dict) are joined by columns, which have two axes in front.
    values, _ = unify(table.values, table.shape, theirs.values, theirs.shape)
    made.key_origins = join_origins(table.keys, one.key_origins, key, other.key_origins)
    made.value_origins = join_origins(table.values, one.value_origins, value, other.value_origins)
    made.table, _ = table.replace(values=values).with_types(key, value, max(table.capacity, theirs.capacity))
    return made


def with_keys_of(value: Entries, other: Entries) -> Entries:
    """Return a dict or set whose keys have the dtypes of another one of its structure, at the places of these."""
    table, theirs = value.table, other.table
    if table is None or theirs is None:
        return value
    keys = jax.tree.map(lambda leaf, want: leaf.astype(want.dtype), table.keys, theirs.keys)
    dtypes = [[leaf.dtype for leaf in jax.tree.leaves(columns)] for columns in (table.keys, keys)]
    return value if dtypes[0] == dtypes[1] else value.with_table(table.rebuilt(keys, table.values, table.capacity))


def _of_lane(value: Any) -> Entries:
    if isinstance(value, Entries):
        return value
    return LaneSet.from_items(value) if isinstance(value, set) else LaneDict.from_dict(value)


def _named(value: Entries) -> str:
    return f"a `{value.missing.name}`" if value.missing is not None else "a dict"


def _example(columns: Any) -> Any:
    return jax.tree.map(lambda leaf: leaf[0, 0], columns)
