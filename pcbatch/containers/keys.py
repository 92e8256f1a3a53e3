"""The keys of dicts and sets of the lane: numbers, texts, or tuples of them, told apart as Python tells them apart.

A key is a tree of parts with an equality and a hash: texts are equal if their lengths and the characters in them are,
whatever room they have and whatever lies behind their ends. `1`, `1.0` and `True` are one key, `0.0` and `-0.0` too.
No key is a NaN: Python finds a NaN again by the identity of the object, which values of lanes do not have.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from pcbatch.containers.checks import limit
from pcbatch.containers.columns import padded
from pcbatch.containers.container import Container
from pcbatch.containers.lane_text import LaneText
from pcbatch.containers.members import MemberValue, of_member
from pcbatch.diagnostics.lane_words import type_name
from pcbatch.errors import Refusal
from pcbatch.origins import KINDS

HELP = "use numbers, texts, or tuples of them"


def hashable(key: Any) -> Any:
    """Return a key: a number, a text or a (nested) tuple of them; raises TypeError for one that Python refuses."""
    key = of_member(key)
    if isinstance(key, MemberValue) and issubclass(key.members, str | float):
        raise _refusal(f"a member of {key!r} equals its value, and cannot be a key of a dict or set of the lane")
    if isinstance(key, MemberValue | str | LaneText):
        return key
    if isinstance(key, Container | list | dict | set):
        raise TypeError(f"unhashable type: '{type_name(key)}'")
    if isinstance(key, bytes):
        raise _refusal(f"a dict or set of the lane cannot have the key {key!r}")
    if isinstance(key, tuple):
        for part in key:
            hashable(part)
        return key
    if key is None or type(key) in KINDS:
        return key
    if isinstance(key, jax.Array | np.ndarray | np.generic):
        if key.shape != ():
            raise _refusal(f"an array of shape {key.shape} cannot be a key of a dict or set")
        if jnp.issubdtype(key.dtype, jax.dtypes.prng_key):
            raise _refusal("a PRNG key cannot be a key of a dict or set")
        return key
    raise _refusal(f"a dict or set of the lane cannot have a key of type {type_name(key)}")


def _refusal(title: str) -> Refusal:
    return Refusal("PCB304", title, helps=(HELP,))


def is_of_lane(key: Any) -> bool:
    """Return whether a key holds a number that is not known while compiling."""
    return any(isinstance(leaf, jax.Array) for leaf in jax.tree.leaves(key))


def plain(key: Any) -> Any:
    """Return a key whose named tuples are tuples, which Python finds equal, with members and texts of the lane."""
    key = of_member(key)
    if isinstance(key, str):
        return LaneText.of(key)
    return tuple(map(plain, key)) if isinstance(key, tuple) else key


def is_text(part: Any) -> bool:
    """Return whether a part of a key, or a column of such parts, is a text."""
    return isinstance(part, LaneText)


def parts(key: Any) -> tuple[list[Any], Any]:
    """Return the numbers and texts of a key, or of columns of keys, and its structure."""
    return jax.tree.flatten(plain(key), is_leaf=is_text)


def shown(key: Any) -> Iterator[Any]:
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


def require_no_nan(key: Any) -> None:
    """Let the lane stop where a key that is to be stored holds a NaN."""
    for leaf in jax.tree.leaves(key):
        if isinstance(leaf, jax.Array) and jnp.issubdtype(leaf.dtype, jnp.inexact):
            limit(jnp.logical_not(jnp.isnan(leaf)), NAN_KEY)
        elif isinstance(leaf, float | complex):
            limit(leaf == leaf, NAN_KEY)


def fitted(part: Any, column: Any) -> tuple[Any, Any]:
    """Return a part of a key with the type of a column of such parts, and whether it has kept its value."""
    if not is_text(part):
        return like(part, column.dtype)
    room = column.codes.shape[-1]
    kept = True if part.codes.shape[0] <= room else part.length <= room
    return LaneText.made(padded(part.codes, 0, room)[:room], jnp.asarray(part.length, np.int32)), kept


def equal(row: Any, part: Any) -> Any:
    """Return which parts in a row of a column equal one, bool[places]."""
    if not is_text(row):
        return row == part
    behind = jnp.arange(row.codes.shape[-1], dtype=np.int32) >= part.length
    return (row.length == part.length) & jnp.all((row.codes == part.codes[None]) | behind[None], axis=-1)


def like(leaf: Any, dtype: Any) -> tuple[Any, Any]:
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


def _known_like(number: Any, dtype: Any) -> tuple[Any, bool]:
    if isinstance(number, float) and jnp.issubdtype(dtype, jnp.floating):
        return jnp.asarray(number, dtype), number == number
    try:
        with np.errstate(all="ignore"), jax.ensure_compile_time_eval():
            new = jnp.asarray(number).astype(dtype)
            kept = np.asarray(new).item() == number
    except (OverflowError, TypeError, ValueError):
        return jnp.zeros((), dtype), False
    return new, bool(kept)


def hashed(leaves: list[Any]) -> Any:
    """Return a hash of a key, uint32[], from its parts; equal keys of equal dtypes have equal ones."""
    words = [word for leaf in leaves for word in _words(leaf)]
    if len(words) == 1:
        return scrambled(words[0])
    total = jnp.uint32(len(words))
    for word in words:
        word = word * jnp.uint32(0xCC9E2D51)
        word = ((word << 15) | (word >> 17)) * jnp.uint32(0x1B873593)
        total = total ^ word
        total = ((total << 13) | (total >> 19)) * jnp.uint32(5) + jnp.uint32(0xE6546B64)
    return scrambled(total)


def scrambled(word: Any) -> Any:
    """Return a permutation of the 32-bit words in which every bit depends on all: the end of MurmurHash3."""
    word = (word ^ (word >> 16)) * jnp.uint32(0x85EBCA6B)
    word = (word ^ (word >> 13)) * jnp.uint32(0xC2B2AE35)
    return word ^ (word >> 16)


def _words(leaf: Any) -> list[Any]:
    """Return the 32-bit words of a number or a text; 0.0 and -0.0 have the same."""
    if is_text(leaf):
        powers = np.cumprod(np.full(leaf.codes.shape[0], 0x01000193, np.uint32), dtype=np.uint32)
        codes = jnp.where(leaf.valid(), leaf.codes, 0).astype(jnp.uint32)
        return [jnp.sum(codes * powers, dtype=jnp.uint32) + jnp.asarray(leaf.length).astype(jnp.uint32)]
    if jnp.issubdtype(leaf.dtype, jnp.complexfloating):
        return [*_words(leaf.real), *_words(leaf.imag)]
    if jnp.issubdtype(leaf.dtype, jnp.floating):
        leaf = jnp.where(leaf == 0, jnp.zeros((), leaf.dtype), leaf)
        wide = leaf.astype(jnp.float32) if leaf.dtype.itemsize < 4 else leaf
        bits = jax.lax.bitcast_convert_type(wide, jnp.uint32)
        return [bits] if bits.ndim == 0 else [bits[0], bits[1]]
    if leaf.dtype.itemsize == 8:
        return [leaf.astype(jnp.uint32), (leaf >> 32).astype(jnp.uint32)]
    return [leaf.astype(jnp.uint32)]
