"""The equality of keys of the lane: a key with the type of those in a table, and which of these equal it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import reduce
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from pcbatch.data.checks import limit
from pcbatch.data.columns import Shape, Unset, one_level, padded, room
from pcbatch.data.joinable import Joinable
from pcbatch.data.mappings import key_objects
from pcbatch.data.mappings.key_objects import KeyRecord
from pcbatch.data.mappings.keys import behind_end, is_row, parts, refusal, tuple_like, with_axes
from pcbatch.data.object_parts import is_frozen
from pcbatch.data.row_search import any_row
from pcbatch.data.sequences import list_order
from pcbatch.data.sequences.lane_tuple import LaneTuple
from pcbatch.data.values import Column, Columns, Flag, Index, Value
from pcbatch.errors import Refusal


def fitted(key: Value, columns: Columns, lead: Shape = ()) -> tuple[Value, Value] | None:
    """Return a key with the type of the keys in columns, and whether it has kept its value; None if it equals no such.

    Args:
        key: the key, as `plain` gives it; with axes in front of its leaves if it is a column in a row.
        columns: the columns of keys.
        lead: the sizes of these axes.
    """
    if type(columns) is LaneTuple and type(key) is tuple:
        try:
            key = columns.beside(key, lead)
        except Refusal:
            return None
    if type(key) is LaneTuple and type(columns) is tuple and not lead:
        if isinstance(key.columns, Unset):
            return fitted((), columns)
        found = fitted(tuple(key.element(k) for k in range(len(columns))), columns)
        return found and (found[0], (key.length == len(columns)) & found[1])
    if is_row(columns):
        return _fitted_row(key, columns, lead) if type(key) is type(columns) else None
    if isinstance(key, tuple) and isinstance(columns, tuple):
        return _fitted_parts(key, columns, lambda parts: tuple_like(columns, parts), lead)
    if isinstance(columns, KeyRecord | Joinable):
        return _fitted_object(key, columns, lead)
    if key_objects.is_object(columns) and type(key) is not type(columns):
        if key_objects.is_object(key) or isinstance(key, KeyRecord):
            raise refusal(f"keys of the classes {type(key).__name__} and {type(columns).__name__} in one dict or set")
        return None
    (children, tree), (inner, other) = one_level(key), one_level(columns)
    if tree is None and other is None and not is_row(key):
        return like(key, columns.dtype)
    if tree is None or other is None or str(tree) != str(other):
        return None
    return _fitted_parts(children, inner, lambda parts: jax.tree.unflatten(other, parts), lead)


def _fitted_parts(
    key: Sequence[Value], columns: Sequence[Columns], made: Callable[[list[Value]], Value], lead: Shape
) -> tuple[Value, Value] | None:
    """A key of several parts, made of them, with the types of theirs."""
    if len(key) != len(columns):
        return None
    typed = [part for pair in zip(key, columns, strict=True) if (part := fitted(*pair, lead)) is not None]
    if len(typed) < len(key):
        return None
    kept = [same for _, same in typed if same is not True]
    return made([part for part, _ in typed]), reduce(jnp.logical_and, kept or [True])


def _fitted_object(key: Value, columns: Value, lead: Shape) -> tuple[Value, Value] | None:
    """An object of the lane with the type of columns of such."""
    held = columns.record if isinstance(columns, KeyRecord) else columns
    record = key.record if isinstance(key, KeyRecord) else key
    if record is not None and not isinstance(record, Joinable):
        if key_objects.is_object(key):
            raise refusal(f"keys of the class {type(key).__name__}, of which some are records of the lane")
        return None
    if (static := held.covering(record)) is None:
        return None
    record = held.none(static, lead) if record is None else record.typed(static)
    if not isinstance(columns, KeyRecord):
        return (record, True) if not isinstance(key, KeyRecord) else None
    told = key.told if isinstance(key, KeyRecord) else _none_told(columns.told, lead)
    found = fitted(told, columns.told, lead)
    return found and (KeyRecord(record, found[0]), found[1])


def _none_told(told: Value, lead: Shape) -> Value:
    """What is told of None in place of an object."""
    return jax.tree.map(lambda leaf: jnp.zeros((*lead, *leaf.shape[2:]), leaf.dtype), told)


def _fitted_row(key: Value, columns: Columns, lead: Shape) -> tuple[Value, Value] | None:
    """A text or tuple with the type of a column of such."""
    length = jnp.asarray(key.length, np.int32)
    around = jnp.shape(columns.length)
    if isinstance(key.columns, Unset) or isinstance(columns.columns, Unset):
        if isinstance(columns.columns, Unset):
            return columns.with_data(Unset(), length, columns.origins), length == 0
        none = columns.blanked(around, lead)
        return none.with_data(none.columns, length, columns.origins), True
    size, here = room(columns.columns, len(around)) or 0, room(key.columns, len(lead)) or 0
    cut = (*(slice(None) for _ in lead), slice(size))
    inner = jax.tree.map(lambda leaf: leaf[cut], padded(key.columns, len(lead), size))
    found = fitted(inner, columns.columns, (*lead, size))
    if found is None:
        return None
    row = columns.with_data(found[0], length, columns.origins)
    kept = True if found[1] is True else jnp.all(found[1] | behind_end(row), axis=-1)
    return row, kept if here <= size else kept & (length <= size)


def equal(row: Value, part: Value) -> Value:
    """Return which parts in a row of a column equal one, bool[places]."""
    if not is_row(row):
        return row == with_axes(part, row.ndim)
    same = row.length == with_axes(part.length, jnp.ndim(row.length))
    if isinstance(row.columns, Unset):
        return same
    pairs = zip(parts(row.columns)[0], parts(part.columns)[0], strict=True)
    inner = reduce(jnp.logical_and, [equal(x, y) for x, y in pairs] or [True])
    return same & jnp.all(inner | with_axes(behind_end(part), same.ndim + 1), axis=-1)


def may_equal(columns: Columns, part: Value, place: tuple[Index, ...]) -> Value:
    """Return whether the part of a key at a place of columns may equal one, as far as numbers, lengths and the first
    numbers of rows tell, bool[]."""
    if not is_row(part):
        return _number_at(columns, place) == part
    same = _number_at(columns.length, place) == part.length
    leaves = () if isinstance(part.columns, Unset) else jax.tree.leaves((columns.columns, part.columns))
    if len(leaves) != 2 or leaves[1].ndim != 1 or not leaves[1].size:
        return same
    return same & ((part.length == 0) | (_number_at(leaves[0], (*place, 0)) == leaves[1][0]))


def _number_at(numbers: Column, place: tuple[Index, ...]) -> Value:
    return numbers.at[place].get(mode="promise_in_bounds", wrap_negative_indices=False)


def equals(found: Value, part: Value, where: Flag) -> Value:
    """Return whether a row equals a part of a key of the same type and length, of a lane alone; `where`: else False."""
    if isinstance(part.columns, Unset):
        return where
    stop = jnp.where(where, part.length, 0)
    pairs = list(zip(parts(found.columns)[0], parts(part.columns)[0], strict=True))

    def differs(pair: Value) -> Value:
        return ~reduce(jnp.logical_and, [jnp.asarray(list_order.equal(x, y)) for x, y in pair] or [jnp.bool_(True)])

    return where & ~any_row(differs, pairs, stop)


def like(leaf: Column, dtype: Any) -> tuple[Value, Value]:
    """Return a number with a dtype, and whether it has kept its value.

    Args:
        leaf: a scalar of the lane or a number known while compiling.
        dtype: the dtype of a column of keys.
    """
    if not isinstance(leaf, jax.Array):
        return _known_like(leaf, dtype)
    if leaf.dtype == dtype:
        return leaf, True
    new = leaf.astype(dtype)
    if jnp.issubdtype(leaf.dtype, jnp.bool_):
        return new, True
    if _is_integer(leaf.dtype) and _is_integer(dtype):
        return new, (new.astype(leaf.dtype) == leaf) & ((new < 0) == (leaf < 0))
    if _is_integer(leaf.dtype):
        # The largest integers round up to a float that is out of range, and would come back clamped.
        top = float(jnp.iinfo(leaf.dtype).max)  # type: ignore[no-untyped-call]
        return new, (new.real < top) & (new.real.astype(leaf.dtype) == leaf)
    if _is_integer(dtype):
        info = jnp.iinfo(dtype)  # type: ignore[no-untyped-call]
        real = leaf.real
        inside = (real >= float(info.min)) & (real < float(info.max))
        safe = jnp.where(inside, real, 0).astype(dtype)
        return safe, inside & (safe.astype(leaf.dtype) == leaf)
    return new, new.astype(leaf.dtype) == leaf


def _is_integer(dtype: Any) -> bool:
    return bool(jnp.issubdtype(dtype, jnp.integer))


def _known_like(number: Index, dtype: Any) -> tuple[Value, bool]:
    if isinstance(number, float) and jnp.issubdtype(dtype, jnp.floating):
        return jnp.asarray(number, dtype), number == number
    try:
        with np.errstate(all="ignore"), jax.ensure_compile_time_eval():
            new = jnp.asarray(number).astype(dtype)
            kept = np.asarray(new).item() == number
    except (OverflowError, TypeError, ValueError):
        return jnp.zeros((), dtype), False
    return new, bool(kept)


CHANGED = "an object that is a key of a dict or set has changed in a field by which it is told apart"


def require_unchanged(keys: Value, where: Flag) -> None:
    """Let the lane stop where objects that are keys, or columns of keys, are no longer what they were when they were
    stored; `where`: those that count."""
    for one in jax.tree.leaves(keys, is_leaf=lambda part: isinstance(part, KeyRecord)):
        if isinstance(one, KeyRecord) and not is_frozen(one.record.types[0]):
            limit(jnp.all(_is_unchanged(one) | ~where), CHANGED)


def _is_unchanged(key: KeyRecord) -> Value:
    if jnp.ndim(key.record.identity):
        return jax.vmap(_is_unchanged)(key)
    pairs = zip(parts(key)[0], parts(key.record)[0], strict=True)
    return reduce(jnp.logical_and, [jnp.asarray(equal(before, now)) for before, now in pairs])
