"""The search of a hash table for a key, by lanes together and by a lane alone."""

from __future__ import annotations

from functools import reduce
from itertools import starmap

import jax
import jax.numpy as jnp
import numpy as np

from pcbatch.data.mappings import key_equality
from pcbatch.data.mappings import keys as lane_keys
from pcbatch.data.mappings.stamps import FREE
from pcbatch.data.values import Column, Columns, Index, Value

WIDTH = 8  # places of a bucket
FIRST = 4  # places of a key's first bucket that are filled before its second one is
COLUMNS = np.arange(WIDTH, dtype=np.int32)


def buckets_of(hash_: Value, buckets: int) -> tuple[Value, Value]:
    """Return the two buckets, of so many, in which a key with a hash may lie.

    Each is the upper bits of a product (Knuth, The Art of Computer Programming, volume 3, 6.4): keys in steps, as
    people have them, then lie further apart than by chance. The second product takes all bits of the first.
    """
    if buckets == 1:
        return jnp.int32(0), jnp.int32(0)
    shift = 32 - (buckets.bit_length() - 1)
    first = (hash_ ^ (hash_ >> 15)) * jnp.uint32(0x9E3779B1)
    second = (first ^ (first >> 13)) * jnp.uint32(0x85EBCA6B)
    return (first >> shift).astype(jnp.int32), (second >> shift).astype(jnp.int32)


def places_together(
    stamps: Column,
    columns: list[Column],
    leaves: list[Value],
    kept: list[Value],
    buckets: Value,
    around: tuple[Index, ...],
) -> Value:
    """The column of a key in each bucket; else WIDTH more than the first free one, or 2 * WIDTH if it is full.

    Args:
        stamps, columns: those of the table.
        leaves: the parts of the key.
        kept: bool[] each, whether some table could have such a key.
        buckets: the numbers of the buckets.
        around: the indices of the table among others, where `stamps` and `columns` are those of all of them.
    """

    def place_in(bucket: Index) -> Value:
        of_bucket = _at(stamps, (*around, bucket))
        taken = jnp.where(_same(_at(columns, (*around, bucket)), leaves, kept), COLUMNS, 2 * WIDTH)
        return jnp.min(jnp.where(of_bucket < 0, WIDTH + COLUMNS, taken))

    return tuple(map(place_in, buckets))


def places_alone(
    stamps: Column,
    columns: list[Column],
    leaves: list[Value],
    kept: list[Value],
    buckets: Value,
    around: tuple[Index, ...],
) -> Value:
    """Return what `places_together` does, for a lane alone, which goes on to the next place until it has found the key
    or a place that was never in use: behind it none of the bucket was. In front of `FIRST` it ends the search.
    """
    end = WIDTH * min(stamps.shape[-2], 2)

    def at(bucket: Index, column: Index) -> tuple[Value, Value]:
        stamp, *key = _at([stamps, *columns], (*around, bucket, column))
        pairs = list(zip(key, leaves, strict=True))
        equal = reduce(jnp.logical_and, [*starmap(key_equality.may_equal, pairs), *kept, stamp >= 0])
        for part, leaf in pairs:
            equal = key_equality.equals(part, leaf, equal) if lane_keys.is_row(leaf) else equal
        return stamp, equal

    def step(c: tuple[Value, ...]) -> tuple[Value, ...]:
        number, _, first, second = c
        column, other = number & (WIDTH - 1), number >= WIDTH
        stamp, equal = at(jnp.where(other, buckets[1], buckets[0]), column)
        here = jnp.where(other, second, first)
        here = jnp.where((stamp < 0) & (here == 2 * WIDTH), WIDTH + column, here)
        here, unused = jnp.where(equal, column, here), stamp == FREE
        goes_on = ~equal & ~(unused & (other | (column < FIRST)))
        first, second = jnp.where(other, first, here), jnp.where(other, here, second)
        return jnp.where(unused, WIDTH, number + 1), goes_on, first, second

    begin = jnp.int32(0), jnp.bool_(True), jnp.int32(2 * WIDTH), jnp.int32(2 * WIDTH)
    return jax.lax.while_loop(lambda c: (c[0] < end) & c[1], step, begin)[2:]


def in_second(places: tuple[Value, Value]) -> Value:
    """Return whether a key is, or is to be stored, in the second of its buckets, bool[]: where the first one has
    `FIRST` keys, and the second fewer.

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
