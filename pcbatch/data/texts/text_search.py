"""The places at which one text of the lane occurs in another."""

from __future__ import annotations

from functools import reduce

import jax
import jax.numpy as jnp
import numpy as np

from pcbatch.data.values import Column, Flag, Index, Value


def places(text: Value, part: Value, start: Index = None, end: Index = None) -> Value:
    """Return at which places of a text a part begins, bool[capacity + 1]: the last is the end of a full text.

    Args:
        text: the text.
        part: the text that is looked for.
        start: the place from which on it may begin, counted from the end if negative; None for 0.
        end: the place at which it must have ended, likewise; None for the end of the text.
    """
    first, last = bound(text, 0 if start is None else start), text.length
    last = last if end is None else jnp.minimum(bound(text, end), last)
    size, width = text.codes.shape[0], part.codes.shape[0]
    starts, offsets = jnp.arange(size + 1, dtype=np.int32), jnp.arange(width, dtype=np.int32)
    found = text.codes.at[starts[:, None] + offsets[None]].get(mode="clip") == part.codes[None]
    alike = jnp.all(found | (offsets >= part.length)[None], axis=1)
    return jnp.logical_and(alike, (starts >= first) & (starts + part.length <= last))


def bound(text: Value, place: Index) -> Value:
    """Return a place of a text that is counted from the end if it is negative."""
    return jnp.where(place < 0, jnp.maximum(place + text.length, 0), place)


def taken(here: Flag, part: Value) -> Value:
    """Return the places of a part, of all at which it begins, that do not overlap, from the left."""
    if isinstance(part.length, int) and part.length <= 1:
        return here

    def step(blocked: Value, found: Value) -> Value:
        first = jnp.logical_and(found, blocked <= 0)
        return jnp.where(first, part.length, blocked) - 1, first

    return jax.lax.scan(step, jnp.int32(0), here)[1]


def _in_run(codes: Column, run: range) -> Value:
    return codes == run.start if len(run) == 1 else (codes >= run.start) & (codes < run.stop)


def _runs(characters: str) -> list[range]:
    """The codes of characters as runs of numbers."""
    codes = sorted(set(map(ord, characters)))
    starts = [code for code in codes if code - 1 not in codes]
    ends = [code + 1 for code in codes if code + 1 not in codes]
    return list(map(range, starts, ends))


def is_among(codes: Column, characters: Value) -> Value:
    """Return which codes are those of some characters, which may be known."""
    if isinstance(characters, str) and characters:
        return reduce(jnp.logical_or, [_in_run(codes, run) for run in _runs(characters)])
    width = jnp.arange(characters.codes.shape[0], dtype=np.int32) < characters.length
    return jnp.any((jnp.expand_dims(codes, -1) == characters.codes) & width, axis=-1)
