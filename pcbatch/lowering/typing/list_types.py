"""Types of lists of the lane: put together of those of their elements, and taken apart.

`lane_list_of(i32[], 4)` is a list of the lane, of i32[], with room for 4; `element_of` that list is i32[].
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import jax

from pcbatch.data.capacity import inner, inner_characters
from pcbatch.data.columns import one_level
from pcbatch.data.mappings.ordered_keys import plain, with_ordered_keys
from pcbatch.data.optional import Optional
from pcbatch.data.origins import Origin
from pcbatch.data.rows import Rows
from pcbatch.data.sequences.lane_list import LaneList
from pcbatch.data.sequences.lane_tuple import LaneTuple
from pcbatch.data.stored import is_part, is_stored, parts
from pcbatch.data.texts.lane_text import LaneText
from pcbatch.lowering.typing.abstract_values import Known, kind
from pcbatch.lowering.typing.convert_types import Cell


def lane_list_of(element: Any, room: int) -> Rows:
    """Return the type of a list of the lane with elements of a type, an object whose leaves are cells."""
    origins = tuple(part.origin if isinstance(part, Cell) else Origin.ARRAY for part in parts(element))
    columns = jax.tree.map(lambda cell: _stacked(cell, room), with_ordered_keys(element))
    length = Cell(Known(room), Origin.NUMBER)  # as long as nothing changes it
    made: Rows = LaneList.tree_unflatten(origins, (columns, length))
    return made


def list_of_array(cell: Cell) -> Rows:
    """Return the type of the list of the lane that an array of one axis stands for, where it meets lists."""
    type_ = cell.array
    return lane_list_of(Cell(replace(type_, shape=()), Origin.NUMBER), type_.shape[0])


def _stacked(cell: Cell, room: int) -> Cell:
    type_ = cell.array
    return Cell(replace(type_, shape=(room, *type_.shape)), Origin.ARRAY)


def cut(element: Any) -> Any:
    """Return the type of an element whose lists and texts have no more room than those inside of others have."""

    def one(part: Any) -> Any:
        most = inner_characters() if type(part) is LaneText else inner() if type(part) is LaneList else 0
        length = part.length.leaf.value if most and isinstance(part.length.leaf, Known) else 0
        size = max(most, length) if isinstance(length, int) else most
        if not most or any(cell.array.shape[0] <= size for cell in jax.tree.leaves(part.columns)):
            return part
        columns = jax.tree.map(
            lambda cell: replace(cell, leaf=replace(cell.array, shape=(size, *cell.array.shape[1:]))), part.columns
        )
        return part.with_data(columns, part.length, part.origins)

    return plain(jax.tree.map(one, with_ordered_keys(element), is_leaf=is_stored))


def element_of(rows: Rows) -> Any:
    """Return the type of the elements of a list or tuple of the lane that is in no other one."""
    origins = iter(rows.origins)

    def element(part: Any) -> Any:
        origin = next(origins)
        return jax.tree.map(lambda cell: Cell(replace(cell.array, shape=cell.array.shape[1:]), origin), part)

    return plain(jax.tree.map(element, rows.columns, is_leaf=is_part))


def with_elements(element: Any, rows: Rows, room: int) -> Rows:
    """Return the type of a list or tuple of the lane with elements of another type, and room for so many."""
    whole = lane_list_of(element, room)
    made: Rows = type(rows).tree_unflatten(whole.origins, (whole.columns, rows.state))
    return made


def differ_in_tuples(x: Any, y: Any) -> bool:
    """Return whether columns have known tuples where others have tuples of the lane."""
    match x, y:
        case (tuple(), LaneTuple()) | (LaneTuple(), tuple()):
            return True
        case tuple(), tuple() if len(x) != len(y):
            return True
        case Rows(), Rows():
            return differ_in_tuples(x.columns, y.columns)
        case (Optional(), _) | (_, Optional()):
            return differ_in_tuples(*(part.value if isinstance(part, Optional) else part for part in (x, y)))
    (xs, tree), (ys, other) = one_level(x), one_level(y)
    return bool(xs and ys) and tree == other and any(map(differ_in_tuples, xs, ys))


def is_like_record(parts: list[Any]) -> bool:
    """Return whether the parts of a tuple are of several kinds of numbers, which in one tuple of the lane would be of
    one kind."""
    kinds = [tuple(kind(cell.leaf) for cell in jax.tree.leaves(part)) for part in parts]
    return len(set(kinds)) > 1 and len({one for part in kinds for one in part}) > 1
