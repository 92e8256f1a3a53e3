"""The hashes of keys of the lane, by which a table finds their buckets."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np

from pcbatch.data.by_width import by_width
from pcbatch.data.columns import room
from pcbatch.data.mappings.keys import behind_end, is_row, parts, with_axes
from pcbatch.data.row_search import length_of_run, run_at
from pcbatch.data.values import Column, Columns, Value


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
    return jnp.sum(word * with_axes(powers, word.ndim), axis=-1, dtype=jnp.uint32)


def _powers(size: int) -> Value:
    return np.cumprod(np.full(size, 0x01000193, np.uint32), dtype=np.uint32)


def _sum_together(leaf: Column) -> Value:
    return _counted(leaf.columns, _powers(room(leaf.columns, jnp.ndim(leaf.length)) or 0), behind_end(leaf))


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
