"""Loops over dicts, sets and deques that the body changes: the iterator sees the values of now, and no other size."""

from __future__ import annotations

from typing import Any

import jax.numpy as jnp

from pcbatch.data.aliasing import one_of
from pcbatch.data.checks import require
from pcbatch.data.functions.iteration import DICT_VIEWS, row, rows
from pcbatch.data.functions.lifted import lane_dict
from pcbatch.data.mappings.entries import Entries
from pcbatch.data.mappings.keys import hashable
from pcbatch.data.mappings.lane_dict import LaneDict
from pcbatch.data.mappings.lane_set import DictView, LaneSet
from pcbatch.data.origins import number
from pcbatch.data.sequences.lane_deque import LaneDeque


def watched(value: Any) -> Any:
    """Return a dict or set so that each change of its keys shows in its clock, also if its size does not change.

    The clock goes back where the last key is removed, so from now on no key is the last one.
    """
    if type(value) is set or (type(value) is dict and not any(isinstance(key, str) for key in value)):
        value = LaneSet.from_items(list(value)) if isinstance(value, set) else lane_dict(value)
    if not isinstance(value, LaneDict | LaneSet) or value.table is None:
        return value
    return one_of(value.with_table(value.table.replace(clock=value.table.clock + 1)), [value])


def entries_of(value: Any) -> Any:
    """Return the number of entries of a dict or set before a loop over it, and of insertions, -1 if not known."""
    if isinstance(value, LaneDict | LaneSet) and value.table is not None:
        return value.length, value.table.clock
    if isinstance(value, LaneDeque):
        return value.length, value.start
    return value.length if isinstance(value, Entries) else len(value) if isinstance(value, dict | set) else 0, -1


def moved(already: Any, value: Any, method: str) -> Any:
    """Whether the elements of a deque have moved, after a call of a method; no other object has such methods."""
    if not isinstance(value, LaneDeque):
        return already
    return already | number(value.length > 1) if method == "rotate" else True


def same_size(value: Any, before: Any, has_moved: Any = False) -> Any:
    """Let the lane raise where a dict or set has changed its size, or its keys, in a loop over it.

    If the size is the same again, what Python does follows from its own table, which is not made here: it raises, or
    goes on with other keys. A lane always raises.
    """
    kind = "Set" if isinstance(value, LaneSet | set) else "dictionary"
    size, clock = before
    if isinstance(value, Entries | dict | set):
        now = value.length if isinstance(value, Entries) else len(value)
        require(now == size, "RuntimeError", f"{kind} changed size during iteration")
        if isinstance(value, LaneDict | LaneSet) and value.table is not None:
            holds = (clock < 0) | (value.table.clock == clock)
            require(holds, "RuntimeError", f"{kind} keys changed during iteration")
    if isinstance(value, LaneDeque):
        same = (value.length == size) & (value.start == clock) & jnp.logical_not(has_moved)
        require(same, "RuntimeError", "deque mutated during iteration")
    return 0


def live_rows(view: Any) -> Any:
    """The keys that a loop over the values or items of a dict visits; other values as a loop goes over them."""
    if isinstance(view, DictView):
        return view.source.keys_list()
    return list(view.mapping) if isinstance(view, DICT_VIEWS) else rows(view)


def live_row(kept: Any, value: Any, index: Any, items: bool) -> Any:
    """The element `index` that such a loop takes now from the dict; `items`: with its key."""
    element = row(kept, index)
    if isinstance(value, LaneDict):
        found = _value(value, element)
    elif isinstance(value, dict):
        require(element in value, "RuntimeError", "dictionary keys changed during iteration")
        found = value[element]
    else:
        return element
    return (element, found) if items else found


def _value(value: LaneDict, key: Any) -> Any:
    hashable(key)
    found = value._find(key)
    require(found.present, "RuntimeError", "dictionary keys changed during iteration")
    return value._value_at(found)
