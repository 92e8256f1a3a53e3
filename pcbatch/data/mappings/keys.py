"""The keys of dicts and sets of the lane: numbers, texts, or tuples of them, told apart as Python tells them apart.

A key is a tree of parts with an equality and a hash. Texts and tuples of the lane, its *rows*, are equal if their
lengths and the elements in them are, whatever room they have and whatever lies behind their ends. `1`, `1.0` and
`True` are one key, `0.0` and `-0.0` too. No key is a NaN: Python finds a NaN again by the identity of the object, which
values of lanes do not have.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import reduce
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from pcbatch.data.by_width import by_width
from pcbatch.data.checks import limit
from pcbatch.data.columns import Shape, Unset, leaf_at, one_level, padded, room
from pcbatch.data.container import Container, lane_value
from pcbatch.data.elements import unify
from pcbatch.data.members import MemberValue, of_member
from pcbatch.data.optional import Optional
from pcbatch.data.origins import KINDS
from pcbatch.data.row_search import first_row, length_of_run, run_at
from pcbatch.data.sequences import list_order
from pcbatch.data.sequences.lane_tuple import LaneTuple
from pcbatch.data.stored import UnlikeError, describe
from pcbatch.data.texts.lane_text import LaneText
from pcbatch.data.values import Column, Columns, Flag, Index, Value
from pcbatch.diagnostics.lane_words import type_name
from pcbatch.errors import KeyRefusal, Refusal

ROWS = (LaneText, LaneTuple)
HELP = "use numbers, texts, or tuples of them"
NONE_KEY = "None as a key of a dict or set that has others"
OF_KINDS = "use one kind of keys, or a dict for each kind; write numbers as texts, `str(n)`"
OF_OBJECTS = (
    "keep a dict whose keys are tuples of the numbers and texts that make two objects equal: `found[x.a, x.b] = x` in "
    "place of `found.add(x)`; of a Fraction `(x.numerator, x.denominator)`",
    "objects that Python tells apart by their identity need a number of their own: `x.id`, different for each of them",
)


def hashable(key: Value) -> Value:
    """Return a key: a number, a text or a (nested) tuple of them; raises TypeError for one that Python refuses.

    A lane in which it is None stops, if it is something else in others.
    """
    key = of_member(key)
    if isinstance(key, MemberValue) and issubclass(key.members, str | float):
        raise _refusal(f"a member of {key!r} equals its value, and cannot be a key of a dict or set of the lane")
    if isinstance(key, MemberValue | str | bytes | LaneText):
        return key
    if isinstance(key, LaneTuple):
        hashable(jax.tree.map(lambda leaf: leaf_at(leaf, (0,)), key.columns))
        return key
    if isinstance(key, Container | list | dict | set):
        raise TypeError(f"unhashable type: '{type_name(key)}'")
    if isinstance(key, tuple):
        parts = [hashable(part) for part in key]
        return key if all(a is b for a, b in zip(parts, key, strict=True)) else tuple(parts)
    if key is None or type(key) in KINDS or isinstance(key, Unset):
        return key
    if isinstance(key, jax.Array | np.ndarray | np.generic):
        if key.shape != ():
            raise _refusal(f"an array of shape {key.shape} cannot be a key of a dict or set")
        if jnp.issubdtype(key.dtype, jax.dtypes.prng_key):
            raise _refusal("a PRNG key cannot be a key of a dict or set")
        return key
    if isinstance(key, Optional):
        limit(key.present, NONE_KEY)
        return hashable(key.value)
    raise _refusal(f"a dict or set of the lane cannot have a key of type {type_name(key)}", *OF_OBJECTS)


def _refusal(title: str, *helps: str) -> KeyRefusal:
    return KeyRefusal("PCB304", title, helps=helps or (HELP,))


def covering(columns: Columns, lead: Shape, key: Value) -> Value:
    """Return columns of keys, with these axes in front, in a type that covers a key, too."""
    key = plain(key)
    try:
        return unify(columns, lead, key, ())[0]
    except UnlikeError:
        first = jax.tree.map(lambda leaf: leaf_at(leaf, (0,) * len(lead)), columns)
        kinds = f"{describe(first)} and {describe(key)}"
        raise _refusal(f"the keys of a dict or set of the lane must be alike, not {kinds}", OF_KINDS) from None


def is_of_lane(key: Value) -> bool:
    """Return whether a key holds a number that is not known while compiling."""
    return any(isinstance(leaf, jax.Array) for leaf in jax.tree.leaves(key))


def plain(key: Value) -> Value:
    """Return a key whose named tuples are tuples, which Python finds equal, with members and texts of the lane."""
    key = of_member(key)
    if isinstance(key, str | bytes):
        return lane_value(key)
    return tuple(map(plain, key)) if isinstance(key, tuple) else key


def is_row(part: Value) -> bool:
    """Return whether a part of a key, or a column of such parts, is a text or a tuple of the lane."""
    return isinstance(part, ROWS)


def parts(key: Value) -> tuple[list[Value], Value]:
    """Return the numbers and rows of a key, or of columns of keys, and its structure."""
    return jax.tree.flatten(plain(key), is_leaf=is_row)


def kinds(columns: Columns) -> Value:
    """Return what the hash of a key depends on: the structure of keys, and the dtypes of numbers in them."""
    leaves, tree = parts(columns)
    return str(tree), [(type(leaf), kinds(leaf.columns)) if is_row(leaf) else leaf.dtype for leaf in leaves]


def shown(key: Value) -> Iterator[Value]:
    """Yield the texts and scalars that show a key as `repr` does."""
    if not isinstance(key, tuple):
        yield key if isinstance(key, jax.Array) else repr(key)
        return
    yield "("
    for k, part in enumerate(key):
        if k:
            yield ", "
        yield from shown(part)
    yield ",)" if len(key) == 1 else ")"


NAN_KEY = "a key of a dict or set of the lane is NaN, of which Python keeps as many as there are objects"


def is_nan(key: Value) -> Value:
    """Return whether a key holds a NaN, for each of those in columns."""
    found: Value = False
    held: Value
    for part in parts(key)[0]:
        if is_row(part):
            holds = is_nan(part.columns)
            held = holds if holds is False else jnp.any(holds & ~_behind(part), axis=-1)
        elif isinstance(part, jax.Array) and jnp.issubdtype(part.dtype, jnp.inexact):
            held = jnp.isnan(part)
        else:
            held = isinstance(part, float | complex) and part != part
        found = held if found is False else found | held
    return found


def require_no_nan(key: Value) -> None:
    """Let the lane stop where a key that is to be stored holds a NaN."""
    limit(list_order.not_(is_nan(key)), NAN_KEY)


def _behind(row: Value) -> Value:
    """The mask of the places behind the end of a row, for each in a column."""
    size = room(row.columns, jnp.ndim(row.length))
    length = jnp.asarray(row.length)[..., None]
    return _with_axes(jnp.arange(size, dtype=np.int32), length.ndim) >= length


def _with_axes(value: Value, count: int) -> Value:
    """A number, or an array with axes of size one in front so that it has so many."""
    missing = count - jnp.ndim(value) if jnp.ndim(value) else 0
    return jnp.expand_dims(value, tuple(range(missing))) if missing else value


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
    (children, tree), (inner, other) = one_level(key), one_level(columns)
    if tree is None and other is None and not is_row(key):
        return like(key, columns.dtype)
    if tree is None or other is None or str(tree) != str(other):
        return None
    typed = [part for pair in zip(children, inner, strict=True) if (part := fitted(*pair, lead)) is not None]
    if len(typed) < len(children):
        return None
    kept = [same for _, same in typed if same is not True]
    return jax.tree.unflatten(other, [part for part, _ in typed]), reduce(jnp.logical_and, kept or [True])


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
    kept = True if found[1] is True else jnp.all(found[1] | _behind(row), axis=-1)
    return row, kept if here <= size else kept & (length <= size)


def equal(row: Value, part: Value) -> Value:
    """Return which parts in a row of a column equal one, bool[places]."""
    if not is_row(row):
        return row == _with_axes(part, row.ndim)
    same = row.length == _with_axes(part.length, jnp.ndim(row.length))
    if isinstance(row.columns, Unset):
        return same
    pairs = zip(parts(row.columns)[0], parts(part.columns)[0], strict=True)
    inner = reduce(jnp.logical_and, [equal(x, y) for x, y in pairs] or [True])
    return same & jnp.all(inner | _with_axes(_behind(part), same.ndim + 1), axis=-1)


def may_equal(row: Value, part: Value) -> Value:
    """Return which parts in a row of a column may equal one, as far as numbers and lengths tell, bool[places]."""
    return row.length == part.length if is_row(row) else equal(row, part)


def equals(found: Value, part: Value, where: Flag) -> Value:
    """Return whether a row equals a part of a key of the same type and length, of a lane alone; `where`: else False."""
    if isinstance(part.columns, Unset):
        return where
    stop = jnp.where(where, part.length, 0)
    pairs = list(zip(parts(found.columns)[0], parts(part.columns)[0], strict=True))

    def differs(pair: Value) -> Value:
        return ~reduce(jnp.logical_and, [jnp.asarray(list_order.equal(x, y)) for x, y in pair] or [jnp.bool_(True)])

    return where & (first_row(differs, pairs, stop) == stop)


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


def hashed(leaves: list[Value]) -> Value:
    """Return a hash of a key, uint32[], from its parts; equal keys of equal dtypes have equal ones.

    It is made in as few steps as a table can do with, since each look-up waits for it: parts are multiplied and turned,
    and a table mixes what comes out (`hash_table`).
    """
    return _word([word for leaf in leaves for word in _words(leaf)])


def _word(words: list[Value]) -> Value:
    """One word of several; 0 of none, as of the key `()`."""
    total = words[0] if words else jnp.uint32(0)
    for word in words[1:]:
        total = total * jnp.uint32(0x9E3779B1)
        total = ((total << 5) | (total >> 27)) ^ word
    return total


def _counted(columns: Columns, powers: Value, behind: Value) -> Value:
    """The sum of the words of elements, each times its power; those behind the end count nothing."""
    word = jnp.where(behind, jnp.uint32(0), _word([word for part in parts(columns)[0] for word in _words(part)]))
    return jnp.sum(word * _with_axes(powers, word.ndim), axis=-1, dtype=jnp.uint32)


def _powers(size: int) -> Value:
    return np.cumprod(np.full(size, 0x01000193, np.uint32), dtype=np.uint32)


def _sum_together(leaf: Column) -> Value:
    return _counted(leaf.columns, _powers(room(leaf.columns, jnp.ndim(leaf.length)) or 0), _behind(leaf))


def _sum_alone(leaf: Column) -> Value:
    size = room(leaf.columns, 0) or 0
    columns = (leaf.columns, jnp.asarray(_powers(size)))

    few = length_of_run(columns, size)

    def step(c: tuple[Value, Value]) -> tuple[Value, Value]:
        start = c[0] * few
        places, (part, powers) = run_at(columns, start, size)
        more = _counted(part, powers, (places < start) | (places >= leaf.length))
        return c[0] + 1, c[1] + more

    # Rounds are counted: XLA takes a loop from 0 to 1 in larger steps, if it knows the end, for one without rounds.
    return jax.lax.while_loop(lambda c: c[0] * few < leaf.length, step, (jnp.int32(0), jnp.uint32(0)))[1]


def _words(leaf: Column) -> list[Value]:
    """Return the 32-bit words of a number or a row, or of each in a column; 0.0 and -0.0 have the same."""
    if is_row(leaf):
        length = jnp.asarray(leaf.length).astype(jnp.uint32)
        if not parts(leaf.columns)[0]:
            return [length]
        alone = _sum_alone if jnp.ndim(leaf.length) == 0 and room(leaf.columns, 0) else None
        return [by_width(_sum_together, alone)(leaf) + length]
    if jnp.issubdtype(leaf.dtype, jnp.complexfloating):
        return [*_words(leaf.real), *_words(leaf.imag)]
    if jnp.issubdtype(leaf.dtype, jnp.floating):
        leaf = jnp.where(leaf == 0, jnp.zeros((), leaf.dtype), leaf)
        wide = leaf.astype(jnp.float32) if leaf.dtype.itemsize < 4 else leaf
        bits = jax.lax.bitcast_convert_type(wide, jnp.uint32)
        return [bits] if bits.ndim == leaf.ndim else [_folded(bits[..., 0], bits[..., 1])]
    if leaf.dtype.itemsize == 8:
        return [_folded(leaf.astype(jnp.uint32), (leaf >> 32).astype(jnp.uint32))]
    return [leaf.astype(jnp.uint32)]


def _folded(low: Value, high: Value) -> Value:
    """One word of the two halves of a number: the lower one, if the upper one is zero."""
    return low ^ (high * jnp.uint32(0xC2B2AE35))
