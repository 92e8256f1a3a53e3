"""Dicts and sets that are known while compiling as ones of the lane, and keys of other dtypes."""

from __future__ import annotations

from typing import Any

import jax

from pcbatch.data.elements import unify
from pcbatch.data.mappings.entries import Entries
from pcbatch.data.mappings.lane_dict import LaneDict
from pcbatch.data.mappings.lane_set import LaneSet


def with_keys_of(value: Entries, other: Entries) -> Entries:
    """Return a dict or set whose keys have the dtypes of another one of its structure, at the places of these."""
    table, theirs = value.table, other.table
    if table is None or theirs is None:
        return value
    keys = jax.tree.map(lambda leaf, want: leaf.astype(want.dtype), table.keys, theirs.keys)
    dtypes = [[leaf.dtype for leaf in jax.tree.leaves(columns)] for columns in (table.keys, keys)]
    if dtypes[0] == dtypes[1]:
        return value
    return value.with_table(table.rebuilt(keys, table.values, table.capacity, table.count.shape))


def of_lane(value: Any) -> Entries:
    """Return a dict or a set as one of the lane."""
    if isinstance(value, Entries):
        return value
    return LaneSet.from_items(list(value)) if isinstance(value, set) else LaneDict.from_dict(value)


def covered(a: Any, b: Any) -> Entries:
    """Return a dict or set, or a column of them, as one of the type that covers it and another.

    Raises:
        Refusal: if there is no such type.
    """
    one, other = of_lane(a), of_lane(b)
    made: Entries = unify(one, one.around, other, other.around)[0]
    return made
