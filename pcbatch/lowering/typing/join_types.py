"""The least type that covers two: of leaves by their lattice, of structures by containers of the lane.

    [] and [i32[]]                 a list of the lane, of i32[]
    (i32[], []) and (f32[], [])    (f32[], [])
    None and i32[]                 i32[] or None

Structures that are equal are joined leaf by leaf. Where they differ, the types are put together as objects of Python
whose leaves are `Cell`, walked side by side, and taken apart again.
"""

from __future__ import annotations

from dataclasses import replace
from enum import Enum
from functools import reduce
from typing import Any

import jax

from pcbatch.data.capacity import capacity, rounded
from pcbatch.data.columns import Shape, Unset
from pcbatch.data.container import lane_value
from pcbatch.data.elements import prepare
from pcbatch.data.mappings.entries import Entries
from pcbatch.data.mappings.ordered_keys import keeping_order
from pcbatch.data.mappings.stored_table import covered
from pcbatch.data.members import MemberValue
from pcbatch.data.objects import made_classes
from pcbatch.data.objects.packed import erased
from pcbatch.data.objects.reference import Ref
from pcbatch.data.optional import Optional
from pcbatch.data.origins import Origin, met
from pcbatch.data.rows import Rows
from pcbatch.data.sequences.lane_tuple import LaneTuple
from pcbatch.data.stored import Stored, is_table, parts
from pcbatch.data.texts.lane_bytes import LaneBytes
from pcbatch.data.texts.lane_text import LaneText
from pcbatch.data.texts.text_parts import TextParts
from pcbatch.ir.types import BOOL, ArrayType
from pcbatch.lowering.typing.abstract_values import (
    Abstract,
    JoinError,
    Known,
    array_type,
    common_tree,
    join_leaf,
    join_leaves,
    kind,
    with_origins,
)
from pcbatch.lowering.typing.convert_types import Cell, made_of, objects_of, of_objects
from pcbatch.lowering.typing.jax_types import from_aval
from pcbatch.lowering.typing.kept_traces import kept_join
from pcbatch.lowering.typing.list_types import (
    cut,
    differ_in_tuples,
    element_of,
    is_like_record,
    lane_list_of,
    list_of_array,
    with_elements,
)
from pcbatch.lowering.typing.pytree import children_of, mapped


def join(a: Abstract, b: Abstract) -> Abstract:
    """Return the least abstract value that covers both. Raises JoinError if there is none."""
    try:
        return join_leaves(a, b)
    except JoinError as error:
        if error.kind not in ("structure", "shape", "value"):
            raise
        cause = error
    return kept_join(a, b, lambda: _above(of_objects(_joined(objects_of(a), objects_of(b), 0, cause)), a, b))


def _above(joined: Abstract, *sides: Abstract) -> Abstract:
    """Return a joined type whose origins cover those of the sides that have its structure, as inference climbs only."""
    for side in sides:
        if (tree := common_tree(joined.tree, side.tree)) is not None:
            pairs = enumerate(zip(joined.leaves, side.leaves, strict=True))
            origins = [met(joined.origin(k), kind(x), side.origin(k), kind(y)) for k, (x, y) in pairs]
            joined = with_origins(tree, joined.leaves, origins)
    return joined


def differs(have: Abstract, want: Abstract) -> bool:
    """Return whether a value of one type has to be converted by `convert` to be one of another."""
    if common_tree(erased(have.tree), erased(want.tree)) is None:
        return True
    pairs = [
        (x, y)
        for x, y in zip(have.leaves, want.leaves, strict=True)
        if isinstance(x, ArrayType) and isinstance(y, ArrayType)
    ]
    if any(x.shape != y.shape for x, y in pairs):
        return True
    return any(x.dtype != y.dtype for x, y in pairs) and _has_tables(want)


def _has_tables(value: Abstract) -> bool:
    """Whether a type has a hash table in it, in which keys of another dtype have other places."""
    parts = jax.tree.leaves(objects_of(value), is_leaf=lambda part: isinstance(part, Entries))
    return any(isinstance(part, Entries) for part in parts)


def with_texts(value: Abstract) -> Abstract:
    """Return a type in which known texts and members are those of the lane, as in results."""

    def is_parts(part: Any) -> bool:
        return isinstance(part, TextParts)

    whole = objects_of(value)
    known = any(isinstance(leaf, Known) and isinstance(leaf.value, str | bytes | Enum) for leaf in value.leaves)
    if not known and not any(map(is_parts, jax.tree.leaves(whole, is_leaf=is_parts))):
        return value

    return of_objects(mapped(_of_lane, whole, is_leaf=is_parts))


def _of_lane(part: Any) -> Any:
    """A part of a type with a text or a member of the lane in place of a known one."""
    if isinstance(part, TextParts):
        return _with_rows(part)
    members = _enumeration(part) if isinstance(part, Cell) else None
    if members is not None and not issubclass(members, int):
        return _member(members)
    text = _as_text(part)
    return part if text is None else text


def _joined(x: Any, y: Any, lead: int, error: JoinError) -> Any:
    """Join two objects; `lead` is the number of lists that they are elements of, whose axes come first."""
    match x, y:
        case (TextParts(), _) | (_, TextParts()) if x is not None and y is not None:
            return _joined(_with_rows(x), _with_rows(y), lead, error)
        case (Cell() | MemberValue(), Cell() | MemberValue()) if (members := _members(x, y)) is not None:
            return members
        case (Cell() | Rows(), Cell() | Rows()) if (texts := _texts(x, y)) is not None:
            return texts[0] if x is y else _lists(*texts, lead, error, grown=0)
        case Cell(), Cell():
            return _cells(x, y, lead)
        case None, None:
            return None
        case (Unset(), _):
            return y
        case (_, Unset()):
            return x
        case Ref(), Ref() | None:
            return joined_references(x, y, lead, error)
        case None, Ref():
            return joined_references(y, x, lead, error)
        case (Ref(), _) | (_, Ref()) if _is_made(x) or _is_made(y):
            raise JoinError("a record that is made in a lane cannot take the place of a packed one", "made")
        case (Optional(), _) | (_, Optional()) | (None, _) | (_, None):
            return _optional(x, y, lead, error)
        case (Entries(), _) | (_, Entries()):
            return _entries(x, y, lead, error)
        case (dict(), dict()) if x.keys() != y.keys():
            return _entries(x, y, lead, error)
        case (tuple(), LaneTuple()) | (LaneTuple(), tuple()) if not lead:
            return _lists(_as_lane_tuple(x, error), _as_lane_tuple(y, error), lead, error, grown=0)
        case (tuple(), tuple()) if type(x) is type(y) is tuple and len(x) != len(y) and not lead:
            if any(is_like_record([_listed(part, error) for part in one]) for one in (x, y)):
                raise error
            return _lists(_as_lane_tuple(x, error), _as_lane_tuple(y, error), lead, error, grown=_grown(x, y))
        case (Cell(), list() | Rows()) if not lead and _is_vector(x):
            return _joined(list_of_array(x), y, lead, error)
        case (list() | Rows(), Cell()) if not lead and _is_vector(y):
            return _joined(x, list_of_array(y), lead, error)
        case (list() | Rows(), list() | Rows()) if not _alike(x, y):
            one, other = _as_lane_list(x, error), _as_lane_list(y, error)
            if type(one) is not type(other):
                raise error
            return _lists(one, other, lead, error, grown=_grown(x, y))
    return _nodes(x, y, lead, error)


def _entries(x: Any, y: Any, lead: int, error: JoinError) -> Any:
    """Join two dicts or sets, of which one is of the lane or which differ in their keys."""
    if not all(
        isinstance(getattr(getattr(value, "leaf", None), "value", value), dict | Entries | set) for value in (x, y)
    ):
        raise error
    leads: list[Shape] = []

    def covering(*values: Any) -> Any:
        leads[:] = (lane_value(value).around for value in values)
        return covered(*values)

    made = made_of(covering, x, y)
    if made_classes.nests(made):
        raise JoinError("an object holds another one of its class, to a depth that is not known", "made")
    whole = tuple(map(max, *leads))

    def widened(cell: Cell) -> Cell:
        return Cell(replace(cell.array, shape=whole + cell.array.shape[lead:]), cell.origin)

    return mapped(widened, made)


def _with_rows(x: Any) -> Any:
    """A type with a list of rows in place of one of parts of a text."""
    return made_of(prepare, x) if isinstance(x, TextParts) else x


def _texts(x: Any, y: Any) -> tuple[Rows, Rows] | None:
    """The types of two texts of which one is known while compiling, as texts of the lane; None for anything else."""
    one, other = _as_text(x), _as_text(y)
    if one is None or other is None or (isinstance(x, Cell) and isinstance(y, Cell) and x.leaf == y.leaf):
        return None
    return None if (isinstance(x, Rows) and isinstance(y, Rows)) or type(one) is not type(other) else (one, other)


def _as_text(x: Any) -> Rows | None:
    """The type of a text of the lane for a text; None for anything else."""
    if isinstance(x, Cell):
        known = x.leaf.value if isinstance(x.leaf, Known) else None
        return _of_known(lane_value(known)) if isinstance(known, str | bytes) and not isinstance(known, Enum) else None
    return x if type(x) in (LaneText, LaneBytes) else None


def _members(x: Any, y: Any) -> MemberValue | None:
    """The type of a member of an enumeration, for two of one; None for anything else, and for one known member."""
    kinds = [part.members if isinstance(part, MemberValue) else _enumeration(part) for part in (x, y)]
    if (
        kinds[0] is None
        or kinds[0] is not kinds[1]
        or (isinstance(x, Cell) and isinstance(y, Cell) and x.leaf == y.leaf)
    ):
        return None
    if isinstance(x, MemberValue) and isinstance(y, MemberValue):
        return None
    known = next((part for part in (x, y) if isinstance(part, MemberValue)), None)
    return known or _member(kinds[0])


def _member(members: type[Enum]) -> MemberValue:
    return MemberValue(Cell(ArrayType("int32"), Origin.ARRAY), members)


def _enumeration(cell: Cell) -> type[Enum] | None:
    value = cell.leaf.value if isinstance(cell.leaf, Known) else None
    return type(value) if isinstance(value, Enum) else None


def _of_known(text: Rows) -> Rows:
    cells = (Cell(from_aval(jax.typeof(text.columns)), Origin.ARRAY), Cell(ArrayType("int32"), Origin.NUMBER))
    made: Rows = type(text).tree_unflatten(text.origins, cells)
    return made


def _is_made(x: Any) -> bool:
    """Whether this is an object that was made in a lane, such as a named tuple."""
    return not isinstance(x, Cell | Ref | Optional | Stored | Unset | list | dict) and x is not None


def joined_references(x: Ref, y: Ref | None, lead: int, error: JoinError) -> Ref:
    """Join a reference with another one, or with None."""
    type_ = x.covering(y)
    if type_ is None:
        raise JoinError("they are records of two arguments, which were packed apart", "packed")
    return Ref(x.pcbatch_id if y is None else _cells(x.pcbatch_id, y.pcbatch_id, lead), type_)


def _nodes(x: Any, y: Any, lead: int, error: JoinError) -> Any:
    """Join two nodes of one kind child by child."""
    if isinstance(x, Cell) or isinstance(y, Cell):
        raise error
    (xs, tree), (ys, other) = children_of(x), children_of(y)
    try:
        alike = tree == other
    except Exception:  # the static fields of a registered class have an exotic __eq__, as arrays have
        alike = False
    if not alike:
        raise error
    if not xs and x is not None:
        return x
    return jax.tree.unflatten(tree, [_joined(a, b, lead, error) for a, b in zip(xs, ys, strict=True)])


def _alike(x: Any, y: Any) -> bool:
    """Whether two known lists are equally long, so that they stay known."""
    return isinstance(x, list) and isinstance(y, list) and len(x) == len(y)


def _grown(x: Any, y: Any) -> int:
    """The capacity of a list or tuple of which several lengths are known: that of lists made of others, at least."""
    if isinstance(x, list | tuple) and isinstance(y, list | tuple):
        return max(capacity(grows=False), rounded(max(len(x), len(y))))
    return 0


def _cells(x: Cell, y: Cell, lead: int) -> Cell:
    if not lead:
        one = join_leaf(x.leaf, y.leaf)
        return Cell(one, _origin(x, y))
    a, b = x.array, y.array
    shape = tuple(max(m, n) for m, n in zip(a.shape[:lead], b.shape[:lead], strict=True))
    inner = join_leaf(replace(a, shape=a.shape[lead:]), replace(b, shape=b.shape[lead:]))
    assert isinstance(inner, ArrayType)
    return Cell(replace(inner, shape=shape + inner.shape), Origin.ARRAY)


def _origin(x: Cell, y: Cell) -> Origin:
    return met(x.origin, kind(x.leaf), y.origin, kind(y.leaf))


def _optional(x: Any, y: Any, lead: int, error: JoinError) -> Any:
    parts = [part.value if isinstance(part, Optional) else part for part in (x, y) if part is not None]
    value = reduce(lambda a, b: _joined(a, b, lead, error), parts)
    if value is None:
        return None
    value = mapped(_of_lane, value)
    if _nests(value):
        kind = type(value).__name__
        raise JoinError(f"a {kind} holds a {kind}, which holds another, to a depth that is not known", "made")
    leaves = jax.tree.leaves(value)
    shape = leaves[0].array.shape[:lead] if leaves and lead else ()
    return Optional(keeping_order(_made_array, value), Cell(replace(BOOL, shape=shape), Origin.NUMBER))


def _nests(value: Any) -> bool:
    """Whether an object has one of its own kind in a part that may be None: joins would nest without end."""
    if not _is_made(value):
        return False
    found: list[Any] = jax.tree.leaves(value, is_leaf=lambda part: isinstance(part, Optional))
    return any(isinstance(part, Optional) and type(part.value) is type(value) for part in found)


def _made_array(cell: Cell) -> Cell:
    return Cell(array_type(cell.leaf), cell.origin)


def _as_lane_list(x: Any, error: JoinError) -> Rows:
    """The type of a list of the lane that holds what a known list holds, with as much room."""
    if isinstance(x, Rows):
        return x
    elements = [_listed(element, error) for element in x]
    element = reduce(lambda a, b: _joined(a, b, 0, error), elements) if elements else Unset()
    return lane_list_of(cut(element), len(x))


def _as_lane_tuple(x: Any, error: JoinError) -> Rows:
    """The type of a tuple of the lane that holds what a known tuple holds."""
    if type(x) is LaneTuple:
        return x
    if type(x) is not tuple:
        raise error
    whole = _as_lane_list(list(x), error)
    made: Rows = LaneTuple.tree_unflatten(whole.origins, (whole.columns, whole.state))
    return made


def _is_vector(cell: Cell) -> bool:
    return isinstance(cell.leaf, ArrayType) and len(cell.leaf.shape) == 1


def _listed(element: Any, error: JoinError) -> Any:
    """An element with the known lists in it as lists of the lane."""
    if isinstance(element, list):
        return _as_lane_list(element, error)
    known = element.leaf.value if isinstance(element, Cell) and isinstance(element.leaf, Known) else None
    if is_table(element) or isinstance(known, set | frozenset):
        return made_of(prepare, element)
    if (text := _as_text(element)) is not None:
        return text
    if isinstance(element, Cell) and (members := _enumeration(element)) and not issubclass(members, int):
        return _member(members)
    if isinstance(element, Cell | Unset | Stored) or element is None:
        return _with_rows(element)
    children, tree = children_of(element)
    return jax.tree.unflatten(tree, [_listed(child, error) for child in children])


def _lists(x: Rows, y: Rows, lead: int, error: JoinError, grown: int) -> Rows:
    if not lead and differ_in_tuples(x.columns, y.columns):
        element = _joined(element_of(x), element_of(y), 0, error)
        room = max(leaf.array.shape[0] for rows in (x, y) for leaf in jax.tree.leaves(rows.columns))
        x, y = with_elements(element, x, room), with_elements(element, y, room)
    columns = _joined(x.columns, y.columns, lead + 1, error)
    if grown:
        columns = jax.tree.map(lambda cell: _roomier(cell, lead, grown), columns)
    length = _cells(x.state, y.state, lead)
    joined: Rows = type(x).tree_unflatten(_origins(x, y), (columns, length))
    return joined


def _roomier(cell: Cell, axis: int, room: int) -> Cell:
    shape = list(cell.array.shape)
    shape[axis] = max(room, shape[axis])
    return Cell(replace(cell.array, shape=tuple(shape)), cell.origin)


def _origins(x: Rows, y: Rows) -> tuple[Origin, ...]:
    for columns, other in ((x.columns, y), (y.columns, x)):
        if isinstance(columns, Unset) or (type(columns) is tuple and not columns):
            return other.origins
    kinds = [[kind(part.leaf) if isinstance(part, Cell) else None for part in parts(rows.columns)] for rows in (x, y)]
    return tuple(map(met, x.origins, kinds[0], y.origins, kinds[1]))
