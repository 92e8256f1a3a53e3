"""The objects of a type that Python can change in place: the object itself, and those inside."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from typing import Any

import jax

from pcbatch.data.columns import Unset
from pcbatch.data.container import Container
from pcbatch.data.mappings.entries import Entries
from pcbatch.data.mappings.keys import ROWS
from pcbatch.data.mappings.lane_dict import LaneDict
from pcbatch.data.mappings.lane_set import LaneFrozenSet
from pcbatch.data.object_parts import IMMUTABLE, parts_of
from pcbatch.data.objects.questions import RECORDS
from pcbatch.data.optional import Optional
from pcbatch.data.sequences.lane_list import LaneList
from pcbatch.data.sequences.lane_tuple import LaneTuple
from pcbatch.data.texts.lane_text import LaneText
from pcbatch.ir.types import ArrayType
from pcbatch.lowering.typing.abstract_values import Abstract, Known

FROZEN = (LaneTuple, LaneFrozenSet)
CHANGED = (LaneList, Entries, list, dict)


@dataclass(frozen=True, slots=True)
class Levels:
    """The levels of a type that Python can change: the object itself, and objects inside."""

    own: bool
    inner: bool


def levels(value: Abstract) -> Levels:
    """Return which objects of a type can be changed in place; scalars and texts cannot."""
    return _levels(value.tree, tuple(_changeable(leaf) for leaf in value.leaves))


def is_array(value: Abstract) -> bool:
    """Return whether a value is one array with axes."""
    alone = len(value.leaves) == 1 and jax.tree_util.treedef_is_leaf(value.tree)
    return bool(alone) and isinstance(value.leaves[0], ArrayType)


def _changeable(leaf: ArrayType | Known) -> int:
    """The number of axes of an array; -1 for a known object that can be changed."""
    if isinstance(leaf, ArrayType):
        return len(leaf.shape)
    return (
        0
        if leaf.value is None or isinstance(leaf.value, (*IMMUTABLE, tuple, frozenset)) or callable(leaf.value)
        else -1
    )


class _Leaf:
    """Stands for a leaf while the structure of a type is looked at."""

    def __init__(self, axes: int) -> None:
        self.axes = axes


@cache
def _levels(tree: Any, axes: tuple[int, ...]) -> Levels:
    return _levels_of(jax.tree.unflatten(tree, [_Leaf(n) for n in axes]))


def _levels_of(value: Any) -> Levels:
    if isinstance(value, _Leaf):
        return Levels(value.axes != 0, False)
    if isinstance(value, (LaneFrozenSet, *RECORDS)) or (isinstance(value, ROWS) and _is_frozen_row(value)):
        return Levels(False, False)
    if isinstance(value, Optional):
        return _levels_of(value.value)
    if isinstance(value, Container):
        return Levels(True, _holds_arrays(value) or _holds_containers(value) or _holds_objects(value))
    found = parts_of(value)
    if found is None:
        leaves = jax.tree.leaves(value)  # a registered class without fields of its own
        return Levels(bool(leaves), any(isinstance(leaf, _Leaf) and leaf.axes != 0 for leaf in leaves))
    mutable, parts = found
    inside = [_levels_of(part) for part in parts if part is not None]
    return Levels(mutable, any(part.own or part.inner for part in inside))


def _is_frozen_row(part: Any) -> bool:
    """Whether a part of a value is a text, or a tuple of the lane in which there are only scalars and such."""
    if not isinstance(part, LaneTuple):
        return isinstance(part, LaneText)
    lead = part.length.axes if isinstance(part.length, _Leaf) else 0
    inside = jax.tree.leaves(part.columns, is_leaf=lambda one: isinstance(one, ROWS))
    return all(_is_frozen_row(one) if isinstance(one, ROWS) else one.axes == lead + 1 for one in inside)


def _holds_arrays(value: Container) -> bool:
    """Whether the elements of a container are, or hold, arrays with axes, or known objects that can be changed.

    The elements of a list of the lane lie along the first axis, those of a table along two; keys cannot be changed.
    """
    table = value.table if isinstance(value, Entries) else None
    elements, axes = (value, 1) if table is None else (table.values, 2)
    parts = jax.tree.leaves(elements, is_leaf=lambda part: part is not value and _is_frozen_row(part))
    return any(isinstance(part, _Leaf) and not 0 <= part.axes <= axes for part in parts)


def _holds_containers(value: Container) -> bool:
    """Whether the elements of a container are, or hold, containers that can be changed, which may be empty ones, and
    dicts by name."""
    parts = jax.tree.leaves(value, is_leaf=lambda part: part is not value and isinstance(part, CHANGED))
    return any(isinstance(part, CHANGED) and not isinstance(part, FROZEN) for part in parts)


def _holds_objects(value: Container) -> bool:
    """Whether the elements of a container are, or hold, objects of the user's that can be changed."""
    parts = jax.tree.leaves(value, is_leaf=lambda part: part is not value and _is_changeable_object(part))
    return any(map(_is_changeable_object, parts))


def _is_changeable_object(part: Any) -> bool:
    if isinstance(part, (_Leaf, Container, list, dict, Optional, Unset, *RECORDS)):
        return False
    found = parts_of(part)
    return found is not None and found[0]


def is_builtin(value: Abstract | None) -> bool:
    """Return whether a value is an array or a container of Python's own."""
    if value is None:
        return False
    node = value.tree.node_data()
    return node is None or issubclass(node[0], list | dict | Container)


def stores_defaults(value: Abstract | None) -> bool:
    """Return whether a value is a `defaultdict`, which a read of what it lacks changes."""
    node = None if value is None else value.tree.node_data()
    if value is None or node is None or not issubclass(node[0], LaneDict):
        return False
    missing = jax.tree.unflatten(value.tree, range(value.tree.num_leaves)).missing
    return missing is not None and missing.stored


def has_arrays(value: Abstract) -> bool:
    """Return whether a value is an array that can be changed in place."""
    return is_array(value) and levels(value).own
