"""Lists, deques and texts of lanes as `Ragged` and `Texts` in results, and these in arguments as lists and texts."""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache, partial
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from pcbatch.data.capacity import rounded
from pcbatch.data.columns import Unset, room
from pcbatch.data.host.dict_forms import Lists, holds_tables
from pcbatch.data.host.host_forms import OfLanes, Uncut, is_concrete, register, replaced
from pcbatch.data.host.ragged import Ragged, RaggedBytes, RaggedTuples, cut, is_form, is_key
from pcbatch.data.host.texts import Texts
from pcbatch.data.mappings.ordered_keys import with_ordered_keys
from pcbatch.data.origins import Origin
from pcbatch.data.rows import Rows
from pcbatch.data.sequences.lane_deque import LaneDeque, LaneQueue, LaneStack
from pcbatch.data.sequences.lane_list import LaneList
from pcbatch.data.sequences.lane_tuple import LaneTuple
from pcbatch.data.stored import inner_parts
from pcbatch.data.texts.lane_bytes import LaneByteArray, LaneBytes
from pcbatch.data.texts.lane_text import LaneText

FORMS: dict[type[Rows], type[Ragged]] = {LaneTuple: RaggedTuples, LaneBytes: RaggedBytes, LaneByteArray: RaggedBytes}


def _of_lists(lists: Rows) -> Any:
    """The form of a list in results; its leaves are [lanes, ...]."""
    if holds_tables(lists):
        return Lists(lists, lists.length)
    kind = FORMS.get(type(lists), Ragged)
    if isinstance(lists.columns, Unset):  # no lane has ever put anything into it
        return kind(_nothing(lists.length), lists.length)
    values = jax.tree.map(lambda x: _of_rows(x) if isinstance(x, Rows) else x, lists.columns, is_leaf=_is_rows)
    return kind(values, lists.length)


def _of_deques(deques: LaneDeque) -> Any:
    """The form of a deque in results: that of a list of its elements, from the first one on."""
    state, columns = deques.state, deques.columns
    if isinstance(state, jax.ShapeDtypeStruct):
        lengths: Any = jax.ShapeDtypeStruct(state.shape[:-1], state.dtype)  # type: ignore[no-untyped-call]
    else:
        lengths = _column(state, 0)
        if not isinstance(columns, Unset):
            starts = _column(state, 1)
            columns = jax.tree.map(lambda leaf: _from_start(leaf, starts), columns)
    return _of_lists(LaneList.tree_unflatten(deques.origins, (columns, lengths)))


def _column(state: Any, k: int) -> Any:
    return jnp.asarray(np.asarray(state)[:, k]) if is_concrete(state) else state[:, k]


def _from_start(leaf: Any, starts: Any) -> Any:
    """Return a column of rings, [lanes, capacity, ...], with the element of each start in place 0."""
    lanes, capacity = leaf.shape[:2]
    if is_key(leaf) or not (isinstance(leaf, np.ndarray) or is_concrete(leaf)):
        order = (jnp.asarray(starts)[:, None] + jnp.arange(capacity)) % capacity
        return leaf[jnp.arange(lanes)[:, None], order]
    # On the host, without a program of XLA for each shape.
    order = (np.asarray(starts)[:, None].astype(np.int64) + np.arange(capacity)) % capacity
    moved = np.asarray(leaf)[np.arange(lanes)[:, None], order]
    return moved if isinstance(leaf, np.ndarray) else jnp.asarray(moved)


def _of_texts(text: Rows) -> Texts:
    """The form of a text in results."""
    return Texts(text.columns, text.length)


def _of_rows(rows: Rows) -> Any:
    return _of_texts(rows) if isinstance(rows, LaneText) else _of_lists(rows)


def _nothing(lengths: Any) -> Any:
    shape, dtype = (*lengths.shape, 0), jax.dtypes.canonicalize_dtype(float)
    if isinstance(lengths, jax.ShapeDtypeStruct):
        return jax.ShapeDtypeStruct(shape, dtype)  # type: ignore[no-untyped-call]
    return (np if isinstance(lengths, np.ndarray) else jnp).zeros(shape, dtype)


def _is_rows(value: object) -> bool:
    return isinstance(value, Rows)


register(LaneList, _of_lists)
register(LaneTuple, _of_lists)
register(LaneBytes, _of_lists)
register(LaneByteArray, _of_lists)
for _deque in (LaneDeque, LaneQueue, LaneStack):
    register(_deque, _of_deques)
register(LaneText, _of_texts)


def shortened(value: Any) -> Any:
    """Return a value with each `Ragged` and `Texts` in it to be cut to its longest one, where lengths are known."""
    return replaced(value, is_form, _shortened)


def _shortened(lists: Ragged | Texts) -> Ragged | Texts:
    if not (isinstance(lists.lengths, np.ndarray) or is_concrete(lists.lengths)):
        return lists
    whole = lists.codes if isinstance(lists, Texts) else lists.values
    # The lengths are kept on the host: those of the result may be donated before the content is read.
    return type(lists)(Uncut(whole, partial(_cut, whole, np.asarray(lists.lengths))), lists.lengths)


def _cut(whole: Any, lengths: np.ndarray) -> Any:
    """Return the content of lists or texts of these lengths, cut to the longest one."""
    axis = lengths.ndim
    longest = int(max(0, lengths.max(initial=0)))

    def cut_leaf(leaf: Any) -> Any:
        if not hasattr(leaf, "shape") or leaf.shape[axis] <= longest:
            return leaf
        if isinstance(leaf, np.ndarray) or is_key(leaf) or not is_concrete(leaf):
            return cut(leaf, axis, longest)
        return jnp.asarray(cut(np.asarray(leaf), axis, longest))  # without a program for each length

    content = jax.tree.map(cut_leaf, whole)
    if isinstance(content, Ragged):  # lists behind the end of a list are none
        there = np.arange(longest) < lengths[..., None]
        inner = np.where(there, np.asarray(content.lengths), 0)
        content = type(content)(
            content.values, inner if isinstance(content.lengths, np.ndarray) else jnp.asarray(inner)
        )
    return shortened(content)


def ragged_in(value: Any) -> bool:
    """Whether a value is or holds a `Ragged` or a `Texts`."""
    return any(map(is_form, jax.tree.leaves(value, is_leaf=is_form)))


def as_containers(value: Any, shared: Sequence[bool] = ()) -> Any:
    """Return an argument with lists and texts of the lane for `Ragged` and `Texts`; leaves keep their axes in front.

    Lists beside others, of which no lane has an element, take the type of the others: `{"a": ["b"], "b": []}`.

    Args:
        value: the argument.
        shared: for each `Ragged` in it, in order, whether it is one list of lists for all lanes.

    Raises:
        ValueError: lengths that lists cannot have.
    """
    parts = jax.tree.leaves(value, is_leaf=is_form)
    alike = dict(zip([id(part) for part in parts if is_form(part)], shared, strict=False))
    return replaced(value, is_form, lambda x: _as_container(x, alike.get(id(x), False), len(parts) > 1))


def _is_empty(lists: Ragged) -> bool:
    """Whether no lane has an element, and no type of elements was told."""
    return _is_untyped(lists.values, np.ndim(lists.lengths))


def _is_untyped(values: Any, axis: int) -> bool:
    return getattr(values, "shape", ())[axis:] == (0,) and values.dtype == jax.dtypes.canonicalize_dtype(float)


class Place(NamedTuple):
    """Lists or texts among the leaves of a structure: `start` to `stop` are their content, `stop` their lengths.

    `least` is the least room that they have; `may_be_empty` whether the content may be no elements of any type.
    """

    start: int
    stop: int
    least: int
    may_be_empty: bool


@lru_cache(maxsize=4096)
def places(tree: Any) -> tuple[Place, ...] | None:
    """Return the places of all lists and texts of lanes in a structure, inner ones first; None where there are others,
    as dicts, or lists of more than tuples."""
    found: list[Place] = []

    def behind(node: Any, start: int) -> int:
        kind = None if node.node_data() is None else node.node_data()[0]
        if kind is None or not issubclass(kind, OfLanes):
            for child in node.children():
                start = behind(child, start)
            return start + (kind is None)
        content, stop = node.children()[0], behind(node.children()[0], start)
        if issubclass(kind, Texts):
            found.append(Place(start, stop, 1, False))
        elif issubclass(kind, Ragged) and _is_of_tuples(content):
            found.append(Place(start, stop, 0, content.node_data() is None))
        else:
            raise _Other
        return stop + 1

    try:
        behind(tree, 0)
    except _Other:
        return None
    return tuple(found)


class _Other(Exception):
    """A structure has containers whose room their values decide."""


def _is_of_tuples(tree: Any) -> bool:
    """Return whether a structure consists of tuples, leaves, and other lists and texts."""
    node = tree.node_data()
    if node is None or issubclass(node[0], OfLanes):
        return True
    return issubclass(node[0], tuple) and all(map(_is_of_tuples, tree.children()))


_UNSIGNED = {size: np.dtype(f"u{size}") for size in (1, 2, 4, 8)}


def with_room(leaves: Sequence[Any], found: Sequence[Place]) -> list[Any] | None:
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


def _as_container(lists: Ragged | Texts, shared: bool, beside: bool) -> Rows:
    if beside and type(lists) is Ragged and _is_empty(lists):
        untyped: LaneList = LaneList.tree_unflatten((), (Unset(), lists.lengths))
        return untyped
    return _as_text(lists) if isinstance(lists, Texts) else _as_list(lists, shared)


def _as_text(texts: Texts) -> LaneText:
    _check_lengths(texts)
    axis = np.ndim(texts.lengths)
    capacity = rounded(max(1, texts.codes.shape[axis]))
    new: LaneText = LaneText.tree_unflatten((Origin.ARRAY,), (_padded(texts.codes, axis, capacity), texts.lengths))
    return new


def _padded(leaf: Any, axis: int, capacity: int) -> Any:
    if isinstance(leaf, jax.ShapeDtypeStruct):
        shape = (*leaf.shape[:axis], capacity, *leaf.shape[axis + 1 :])
        return jax.ShapeDtypeStruct(shape, leaf.dtype)  # type: ignore[no-untyped-call]
    more = capacity - leaf.shape[axis]
    if not more:
        return leaf
    if isinstance(leaf, np.ndarray):
        new = np.zeros((*leaf.shape[:axis], capacity, *leaf.shape[axis + 1 :]), leaf.dtype)
        new[(*(slice(None),) * axis, slice(leaf.shape[axis]))] = leaf
        return new
    return jnp.pad(leaf, [(0, more if k == axis else 0) for k in range(leaf.ndim)])


def _as_list(lists: Ragged, shared: bool) -> LaneList:
    _check_lengths(lists)
    kind = LaneList if shared else next((k for k, form in FORMS.items() if type(lists) is form), LaneList)
    if shared:
        lists = Ragged(lists, np.int32(len(lists)))
    axis = np.ndim(lists.lengths)
    sizes = {leaf.shape[axis] for leaf in jax.tree.leaves(lists.values)}
    capacity = rounded(max(sizes))
    columns = jax.tree.map(lambda leaf: _padded(leaf, axis, capacity), with_ordered_keys(as_containers(lists.values)))
    origins = tuple(_origin(part, axis) for part in jax.tree.leaves(columns, is_leaf=_is_rows))
    new: LaneList = kind.tree_unflatten(origins, (columns, lists.lengths))
    return new


def _check_lengths(lists: Ragged | Texts) -> None:
    """Raise ValueError for lengths that lists or texts cannot have, as far as they are known."""
    name, what = type(lists).__name__, "texts" if isinstance(lists, Texts) else "lists"
    content = lists.codes if isinstance(lists, Texts) else lists.values
    dtype = np.dtype(getattr(lists.lengths, "dtype", np.result_type(0)))
    if not np.issubdtype(dtype, np.integer):
        raise ValueError(f"the lengths of a `{name}` are integers, and not of dtype {dtype}")
    if not (isinstance(lists.lengths, np.ndarray) or is_concrete(lists.lengths)):
        return
    axis, lengths = np.ndim(lists.lengths), np.asarray(lists.lengths)
    if any(np.ndim(leaf) <= axis for leaf in jax.tree.leaves(content)):
        raise ValueError(f"the content of a `{name}` has {axis + 1} axes or more: of lanes, and of the elements")
    sizes = {leaf.shape[axis] for leaf in jax.tree.leaves(content)}
    if (lengths < 0).any():
        failed = ", ".join(map(str, np.flatnonzero(lengths.reshape(len(lengths), -1).min(axis=1) < 0)[:5]))
        raise ValueError(f"lanes {failed} of a `{name}` have failed, and have no {what}")
    if len(sizes) != 1 or lengths.max(initial=0) > max(sizes):
        room = " and ".join(map(str, sorted(sizes)))
        longest = lengths.max(initial=0)
        raise ValueError(f"one of the {what} of a `{name}` has length {longest}, and there are {room} elements")
    if isinstance(content, Ragged):
        _check_lengths(content)


def _origin(part: Any, axis: int) -> Origin:
    scalar = not isinstance(part, Rows) and part.ndim == axis + 1 and not is_key(part)
    return Origin.NUMBER if scalar else Origin.ARRAY


def longest(value: Any, around: int = 0) -> int:
    """Return the most elements that lists in a value, which lies in so many others, have room for; 0 without any."""
    lists = [x for x in inner_parts(value) if isinstance(x, Rows) and not isinstance(x, LaneText)]
    return max((max(room(x._columns, around) or 0, longest(x._columns, around + 1)) for x in lists), default=0)


def as_lists(value: Any) -> Any:
    """Return a value with Python lists in place of each `Ragged`, and strings for texts."""
    return replaced(value, is_form, lambda x: x.tolist())
