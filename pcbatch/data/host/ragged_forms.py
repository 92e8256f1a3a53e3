"""Containers of lanes as `Ragged` in results, and each `Ragged` in arguments as a list or a text of the lane."""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from pcbatch.data.capacity import rounded
from pcbatch.data.columns import Unset, room
from pcbatch.data.host.host_forms import is_concrete, register, replaced
from pcbatch.data.host.ragged import KINDS, TABLES, Kind, Ragged, enters_lanes, is_key
from pcbatch.data.mappings.entries import Entries
from pcbatch.data.mappings.ordered_keys import with_ordered_keys
from pcbatch.data.mappings.stored_table import ADDED, MIXED
from pcbatch.data.origins import Origin
from pcbatch.data.rows import Rows
from pcbatch.data.sequences.lane_deque import LaneDeque, LaneQueue, LaneStack
from pcbatch.data.sequences.lane_list import LaneList
from pcbatch.data.stored import inner_parts, is_stored
from pcbatch.data.texts.lane_text import LaneText

LANE_CLASSES: dict[Kind, type[Any]] = {kind: container for container, kind in reversed(KINDS.items())}


def _of_rows(rows: Rows) -> Ragged:
    """The form of a list, a tuple or a text in results; its leaves are [lanes, ...]."""
    kind = KINDS.get(type(rows), "list")
    if _holds_tables(rows):
        return Ragged(rows, rows.length, kind)
    if isinstance(rows.columns, Unset):  # no lane has ever put anything into it
        return Ragged(_nothing(rows.length), rows.length, kind)
    values = jax.tree.map(lambda x: _of_rows(x) if is_stored(x) else x, rows.columns, is_leaf=is_stored)
    return Ragged(values, rows.length, kind)


def _of_entries(entries: Entries) -> Ragged:
    """The form of a dict or set in results."""
    return Ragged(entries.table, entries.none if entries.table is None else entries.table.count, KINDS[type(entries)])


def _holds_tables(rows: Rows) -> bool:
    """Return whether the elements of a list are, or hold, dicts, sets or deques."""
    inside = jax.tree.leaves(rows.columns, is_leaf=lambda part: isinstance(part, Entries | LaneDeque))
    return any(isinstance(part, Entries | LaneDeque) for part in inside)


def _of_deques(deques: LaneDeque) -> Any:
    """The form of a deque in results: that of a list of its elements, from the first one on."""
    state, columns = deques.state, deques.columns
    if isinstance(state, jax.ShapeDtypeStruct):
        lengths: Any = jax.ShapeDtypeStruct(state.shape[:-1], state.dtype)  # type: ignore[no-untyped-call]
    else:
        on_host = is_concrete(state)
        lengths, starts = (jnp.asarray(np.asarray(state)[:, k]) if on_host else state[:, k] for k in (0, 1))
        columns = jax.tree.map(lambda leaf: _from_start(leaf, starts), columns)
    return _of_rows(LaneList.tree_unflatten(deques.origins, (columns, lengths)))


def _from_start(leaf: Any, starts: Any) -> Any:
    """Return a column of rings, [lanes, capacity, ...], with the element of each start in place 0."""
    lanes, capacity = leaf.shape[:2]
    on_host = is_concrete(leaf) and not is_key(leaf)  # without a program of XLA for each shape
    xp: Any = np if on_host or isinstance(leaf, np.ndarray) else jnp
    order = (xp.asarray(starts)[:, None] + xp.arange(capacity)) % capacity
    moved = (np.asarray(leaf) if on_host else leaf)[xp.arange(lanes)[:, None], order]
    return jnp.asarray(moved) if on_host else moved


def _nothing(lengths: Any) -> Any:
    shape, dtype = (*lengths.shape, 0), jax.dtypes.canonicalize_dtype(float)
    if isinstance(lengths, jax.ShapeDtypeStruct):
        return jax.ShapeDtypeStruct(shape, dtype)  # type: ignore[no-untyped-call]
    return (np if isinstance(lengths, np.ndarray) else jnp).zeros(shape, dtype)


for _container in KINDS:
    register(_container, _of_rows if issubclass(_container, Rows) else _of_entries)
for _container in (LaneDeque, LaneQueue, LaneStack):
    register(_container, _of_deques)
register(Ragged, lambda tables: tables)  # an argument that comes back: what it holds stays in it


def ragged_in(value: Any) -> bool:
    """Whether a value is or holds a `Ragged` that lanes get a list or a text of."""
    return any(map(enters_lanes, jax.tree.leaves(value, is_leaf=enters_lanes)))


def as_containers(value: Any, shared: Sequence[bool] = ()) -> Any:
    """Return an argument with lists and texts of the lane for each `Ragged`; leaves keep their axes in front.

    Lists beside others, of which no lane has an element, take the type of the others: `{"a": ["b"], "b": []}`.

    Args:
        value: the argument.
        shared: for each `Ragged` in it, in order, whether it is one list of lists for all lanes.

    Raises:
        ValueError: lengths that lists cannot have.
    """
    parts = jax.tree.leaves(value, is_leaf=enters_lanes)
    alike = dict(zip([id(part) for part in parts if enters_lanes(part)], shared, strict=False))
    return replaced(value, enters_lanes, lambda x: _as_container(x, alike.get(id(x), False), len(parts) > 1))


def _is_untyped(values: Any, axis: int) -> bool:
    """Whether no lane has an element, and no type of elements was told."""
    return getattr(values, "shape", ())[axis:] == (0,) and values.dtype == jax.dtypes.canonicalize_dtype(float)


class RaggedPlace(NamedTuple):
    """Lists or texts among the leaves of a structure: `start` to `stop` are their content, `stop` their lengths.

    `least` is the least room that they have; `may_be_empty` whether the content may be no elements of any type.
    """

    start: int
    stop: int
    least: int
    may_be_empty: bool


@lru_cache(maxsize=4096)
def places(tree: Any) -> tuple[RaggedPlace, ...] | None:
    """Return the places of all lists and texts of lanes in a structure, inner ones first; None where there are others,
    as dicts, or lists of more than tuples."""
    found: list[RaggedPlace] = []

    def behind(node: Any, start: int) -> int:
        if not _is_ragged(node):
            for child in node.children():
                start = behind(child, start)
            return start + (node.node_data() is None)
        content, kind = node.children()[0], node.node_data()[1]
        if kind in TABLES or not _is_of_tuples(content):
            raise LookupError("containers whose room their values decide")
        stop = behind(content, start)
        found.append(RaggedPlace(start, stop, int(kind == "text"), kind != "text" and content.node_data() is None))
        return stop + 1

    try:
        behind(tree, 0)
    except LookupError:
        return None
    return tuple(found)


def _is_of_tuples(tree: Any) -> bool:
    """Return whether a structure consists of tuples, leaves, and other lists and texts."""
    if tree.node_data() is None or _is_ragged(tree):
        return True
    return issubclass(tree.node_data()[0], tuple) and all(map(_is_of_tuples, tree.children()))


def _is_ragged(tree: Any) -> bool:
    return tree.node_data() is not None and tree.node_data()[0] is Ragged


_UNSIGNED = {size: np.dtype(f"u{size}") for size in (1, 2, 4, 8)}


def with_room(leaves: Sequence[Any], found: Sequence[RaggedPlace]) -> list[Any] | None:
    """Return leaves with the room that lists and texts at these places get in lanes; None for others than arrays on the
    host, lists without a type, or wrong lengths."""
    roomy = list(leaves)
    for start, stop, least, may_be_empty in found:  # every call comes here: no generators, no calls
        lengths, size = roomy[stop], -1
        if type(lengths) is not np.ndarray or lengths.dtype.kind not in "iu":
            return None
        axis = lengths.ndim
        for k in range(start, stop):
            leaf = roomy[k]
            if type(leaf) is not np.ndarray or leaf.ndim <= axis or size not in (-1, leaf.shape[axis]):
                return None
            size = leaf.shape[axis]
        # Without their sign, negative lengths are more than there is room for.
        if size < 0 or (lengths.size and lengths.view(_UNSIGNED[lengths.itemsize]).max() > size):
            return None
        if may_be_empty and not size and _is_untyped(roomy[start], axis):
            return None
        if (room := rounded(max(least, size))) != size:
            roomy[start:stop] = [_padded(leaf, axis, room) for leaf in roomy[start:stop]]
    return roomy


def _as_container(lists: Ragged, shared: bool, beside: bool) -> Any:
    if beside and lists.kind == "list" and _is_untyped(lists.values, np.ndim(lists.lengths)):
        return LaneList.tree_unflatten((), (Unset(), lists.lengths))
    _check_lengths(lists)
    if shared:
        lists = Ragged(lists, np.int32(len(lists)))
    if lists.kind in TABLES:
        return _as_table(lists)
    if isinstance(lists.values, Rows):
        return lists.values
    axis, of_text = np.ndim(lists.lengths), lists.kind == "text"
    capacity = rounded(max(int(of_text), *(leaf.shape[axis] for leaf in jax.tree.leaves(lists.values))))
    columns = jax.tree.map(lambda leaf: _padded(leaf, axis, capacity), with_ordered_keys(as_containers(lists.values)))
    origins = (Origin.ARRAY,) if of_text else _origins(columns, axis + 1)
    return LANE_CLASSES[lists.kind].tree_unflatten(origins, (columns, lists.lengths))


def _origins(columns: Any, axes: int) -> tuple[Origin, ...]:
    """The origins of elements whose columns have so many axes in front: scalars are numbers of Python."""
    parts = jax.tree.leaves(columns, is_leaf=is_stored)
    arrays = (is_stored(part) or part.ndim != axes or is_key(part) for part in parts)
    return tuple(Origin.ARRAY if of_array else Origin.NUMBER for of_array in arrays)


def _as_table(tables: Ragged) -> Any:
    """The dicts or sets of lanes; of sets it is not known how they came to be, which their order follows from."""
    table, axes = tables.values, np.ndim(tables.lengths) + 2
    if table is None:
        return LANE_CLASSES[tables.kind].tree_unflatten(((), (), None, ADDED), (None, tables.lengths))
    origins = _origins(table.keys, axes), _origins(table.values, axes)
    return LANE_CLASSES[tables.kind].tree_unflatten((*origins, None, MIXED), (table, None))


def in_tables(columns: Any) -> Any:
    """Return keys or values on the host with containers of the lane for each `Ragged`; empty ones have no type yet."""
    return replaced(columns, enters_lanes, lambda x: _as_container(x, False, True))


def _padded(leaf: Any, axis: int, capacity: int) -> Any:
    more = capacity - leaf.shape[axis]
    if not more:
        return leaf
    shape = (*leaf.shape[:axis], capacity, *leaf.shape[axis + 1 :])
    if isinstance(leaf, jax.ShapeDtypeStruct):
        return jax.ShapeDtypeStruct(shape, leaf.dtype)  # type: ignore[no-untyped-call]
    if isinstance(leaf, np.ndarray):
        new = np.zeros(shape, leaf.dtype)
        new[(*(slice(None),) * axis, slice(leaf.shape[axis]))] = leaf
        return new
    return jnp.pad(leaf, [(0, more if k == axis else 0) for k in range(leaf.ndim)])


def _check_lengths(lists: Ragged) -> None:
    """Raise ValueError for lengths that lists or texts cannot have, as far as they are known."""
    what, content = f"{lists.kind}s", lists.values
    dtype = np.dtype(getattr(lists.lengths, "dtype", np.result_type(0)))
    if not np.issubdtype(dtype, np.integer):
        raise ValueError(f"the lengths of a `Ragged` are integers, and not of dtype {dtype}")
    if not (isinstance(lists.lengths, np.ndarray) or is_concrete(lists.lengths)):
        return
    axis, lengths = np.ndim(lists.lengths), np.asarray(lists.lengths)
    if (lengths < 0).any():
        failed = ", ".join(map(str, np.flatnonzero(lengths.reshape(len(lengths), -1).min(axis=1) < 0)[:5]))
        raise ValueError(f"lanes {failed} of a `Ragged` have failed, and have no {what}")
    if lists.holds_tables:
        on_host = (leaf.dtype for leaf in jax.tree.leaves(lists.values) if isinstance(leaf, np.ndarray))
        if any(dtype != jax.dtypes.canonicalize_dtype(dtype) for dtype in on_host):
            raise ValueError("they were made with 64-bit types, which hashes of keys depend on")
        return
    if any(np.ndim(leaf) <= axis for leaf in jax.tree.leaves(content)):
        raise ValueError(f"the content of a `Ragged` has {axis + 1} axes or more: of lanes, and of the elements")
    sizes = {leaf.shape[axis] for leaf in jax.tree.leaves(content)}
    if len(sizes) != 1 or lengths.max(initial=0) > max(sizes):
        room = f"there are {' and '.join(map(str, sorted(sizes)))} elements"
        raise ValueError(f"one of the {what} of a `Ragged` has length {lengths.max(initial=0)}, and {room}")
    if isinstance(content, Ragged):
        _check_lengths(content)


def longest(value: Any, around: int = 0) -> int:
    """Return the most elements that lists in a value, which lies in so many others, have room for; 0 without any."""
    lists = [x for x in inner_parts(value) if isinstance(x, Rows) and not isinstance(x, LaneText)]
    return max((max(room(x._columns, around) or 0, longest(x._columns, around + 1)) for x in lists), default=0)
