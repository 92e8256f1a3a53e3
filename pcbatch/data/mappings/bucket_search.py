"""The search of a hash table for a key, by lanes together and by a lane alone."""

from __future__ import annotations

from functools import reduce

import jax
import jax.numpy as jnp
import numpy as np

from pcbatch.data.mappings import key_equality
from pcbatch.data.mappings import keys as lane_keys
from pcbatch.data.mappings.stamps import FREE
from pcbatch.data.values import Column, Columns, Index, Value

WIDTH, COLUMN_BITS = 8, 3  # places of a bucket, a power of two
FIRST = 4  # places of a key's first bucket, from its first column on, that are filled before its second one is
COLUMNS = np.arange(WIDTH, dtype=np.int32)


def buckets_of(hash_: Value, buckets: int) -> tuple[Value, Value, Value]:
    """Return the two buckets, of so many, in which a key with a hash may lie, and the column at which it is looked for
    first in either.

    Bucket and column are the upper bits of a product (Knuth, The Art of Computer Programming, volume 3, 6.4): keys in
    steps, as people have them, then lie further apart than by chance. The second product takes all bits of the first.
    """
    first = (hash_ ^ (hash_ >> 15)) * jnp.uint32(0x9E3779B1)
    shift = 32 - (buckets.bit_length() - 1)
    column = ((first >> (shift - COLUMN_BITS)) & (WIDTH - 1)).astype(jnp.int32)
    if buckets == 1:
        return jnp.int32(0), jnp.int32(0), column
    second = (first ^ (first >> 13)) * jnp.uint32(0x85EBCA6B)
    return (first >> shift).astype(jnp.int32), (second >> shift).astype(jnp.int32), column


def places_together(
    stamps: Column,
    columns: list[Column],
    leaves: list[Value],
    kept: list[Value],
    buckets: Value,
    start: Index,
    around: tuple[Index, ...],
) -> Value:
    """The distance of a key from its first column, in each bucket; else WIDTH more than that of the nearest free place,
    or 2 * WIDTH if the bucket is full.

    Args:
        stamps, columns: those of the table.
        leaves: the parts of the key.
        kept: bool[] each, whether some table could have such a key.
        buckets: the numbers of the buckets.
        start: the first column.
        around: the indices of the table among others, where `stamps` and `columns` are those of all of them.
    """
    distances = (COLUMNS - start) & (WIDTH - 1)

    def place_in(bucket: Index) -> Value:
        of_bucket = _at(stamps, (*around, bucket))
        taken = jnp.where(_same(_at(columns, (*around, bucket)), leaves, kept), distances, 2 * WIDTH)
        return jnp.min(jnp.where(of_bucket < 0, WIDTH + distances, taken))

    return tuple(map(place_in, buckets))


def places_alone(
    stamps: Column,
    columns: list[Column],
    leaves: list[Value],
    kept: list[Value],
    buckets: Value,
    start: Index,
    around: tuple[Index, ...],
) -> Value:
    """Return what `places_together` does, for a lane alone, which goes on to the next place until it has found the key
    or a place that was never in use: no key lies behind one. In front of `FIRST` it ends the search.

    Rows are compared where their lengths and first elements are equal, outside of the loop over places.
    """
    end = WIDTH * min(stamps.shape[-2], 2)
    pairs = list(zip(columns, leaves, strict=True))
    has_rows = any(map(lane_keys.is_row, leaves))

    def place(number: Value) -> tuple[Index, ...]:
        bucket = jnp.where(number >= WIDTH, buckets[1], buckets[0])
        return (*around, bucket, (number + start) & (WIDTH - 1))

    def to_candidate(c: tuple[Value, ...]) -> tuple[Value, ...]:
        number, _, _, first, second = c
        here, other, distance = place(number), number >= WIDTH, number & (WIDTH - 1)
        stamp = _at(stamps, here)
        may = [key_equality.may_equal(column, leaf, here) for column, leaf in pairs]
        found = reduce(jnp.logical_and, [*may, *kept, stamp >= 0])
        unused, free = stamp == FREE, jnp.where(stamp < 0, WIDTH + distance, 2 * WIDTH)
        stops = found | (unused & (other | (distance < FIRST)))
        first = jnp.where(other, first, jnp.minimum(first, free))
        second = jnp.where(other, jnp.minimum(second, free), second)
        return jnp.where(stops, number, jnp.where(unused, WIDTH, number + 1)), found, stops, first, second

    def search(c: tuple[Value, ...]) -> tuple[Value, ...]:
        return jax.lax.while_loop(lambda c: (c[0] < end) & ~c[2], to_candidate, c)

    def compared(c: tuple[Value, ...]) -> tuple[Value, ...]:
        number, found, stops, first, second = search((c[0], jnp.bool_(False), jnp.bool_(False), *c[3:]))
        at, equal = place(jnp.minimum(number, end - 1)), found
        for column, leaf in pairs:
            equal = key_equality.equals(_at(column, at), leaf, equal) if lane_keys.is_row(leaf) else equal
        again = found & ~equal
        return number + again.astype(jnp.int32), equal, ~again, first, second

    full = jnp.int32(2 * WIDTH)
    begin = jnp.int32(0), jnp.bool_(False), jnp.bool_(False), full, full
    number, found, _, first, second = (
        jax.lax.while_loop(lambda c: (c[0] < end) & ~c[2], compared, begin) if has_rows else search(begin)
    )
    in_other = number >= WIDTH
    return (
        jnp.where(found & ~in_other, number, first),
        jnp.where(found & in_other, number & (WIDTH - 1), second),
    )


def in_second(places: tuple[Value, Value]) -> Value:
    """Return whether a key is, or is to be stored, in the second of its buckets, bool[]: where the nearest `FIRST`
    places of the first one are taken, and the second has a nearer one.

    Args:
        places: what the search of each bucket has given.
    """
    first, second = places
    return (second < WIDTH) | ((first >= WIDTH + FIRST) & (second < first))


def _same(row: Value, leaves: list[Value], kept: list[Value]) -> Value:
    hits = [key_equality.equal(column, leaf) for column, leaf in zip(row, leaves, strict=True)]
    return reduce(jnp.logical_and, [*hits, *kept] or [True])


def _at(columns: Columns, place: tuple[Index, ...]) -> Value:
    return jax.tree.map(lambda leaf: leaf.at[place].get(mode="promise_in_bounds", wrap_negative_indices=False), columns)
