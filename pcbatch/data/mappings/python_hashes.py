"""The hashes that CPython gives integers and tuples of them, as words of 32 bits, which lanes have in any case.

An integer is its own hash modulo 2**61 - 1; that of a tuple mixes the hashes of its elements as xxHash does
(`Objects/tupleobject.c`), the same in every version since 3.8.
"""

from __future__ import annotations

from functools import reduce

import jax
import jax.numpy as jnp

from pcbatch.data.values import Column, Columns, Value

Words = tuple[Value, Value]
"""The lower and the upper half of a number of 64 bits, each uint32[...]."""

PRIMES = 11400714785074694791, 14029467366897019727, 2870177450012600261
LENGTH_MARK = PRIMES[2] ^ 3527539
TURN = 31  # bits by which a tuple's hash is rotated for each element
MODULUS = 2**61 - 1
NO_HASH = 2**64 - 1  # -1, which says that there was an error
IN_PLACE_OF_TUPLE = 1546275796


def has_hash(keys: Columns) -> bool:
    """Return whether keys are integers, or tuples of them."""
    if isinstance(keys, tuple):
        return len(keys) > 0 and all(map(has_hash, keys))
    dtype = getattr(keys, "dtype", None)
    return dtype is not None and bool(dtype == jnp.bool_ or jnp.issubdtype(dtype, jnp.integer))


def python_hashes(keys: Columns) -> Words:
    """Return the hashes of keys, those of columns for each of these."""
    if not isinstance(keys, tuple):
        return _of_integer(keys)
    lanes = [python_hashes(part) for part in keys]
    mixed = reduce(_mixed, lanes, _constant(PRIMES[2], lanes[0]))
    found = _plus(mixed, _constant(len(keys) ^ LENGTH_MARK, mixed))
    return _in_place_of(found, NO_HASH, IN_PLACE_OF_TUPLE)


def _of_integer(key: Column) -> Words:
    if key.dtype.itemsize <= 4:
        key = key if key.dtype != jnp.bool_ else key.astype(jnp.int32)
        sign = jnp.where(key < 0, jnp.uint32(0xFFFFFFFF), jnp.uint32(0))
        return _in_place_of((key.astype(jnp.uint32), sign), NO_HASH, NO_HASH - 1)
    size = jnp.where(key < 0, -key.astype(jnp.uint64), key.astype(jnp.uint64))
    rest = (size & jnp.uint64(MODULUS)) + (size >> jnp.uint64(61))
    rest = jnp.where(rest >= MODULUS, rest - jnp.uint64(MODULUS), rest)
    rest = jnp.where(key < 0, -rest, rest)
    words = rest.astype(jnp.uint32), (rest >> jnp.uint64(32)).astype(jnp.uint32)
    return _in_place_of(words, NO_HASH, NO_HASH - 1)


def _mixed(found: Words, lane: Words) -> Words:
    """The hash of a tuple with one more element, but for the length."""
    low, high = _plus(found, _times(lane, PRIMES[1]))
    turned = (low << TURN) | (high >> (32 - TURN)), (high << TURN) | (low >> (32 - TURN))
    return _times(turned, PRIMES[0])


def _constant(value: int, like: Words) -> Words:
    return jnp.full_like(like[0], value & 0xFFFFFFFF), jnp.full_like(like[0], value >> 32)


def _plus(a: Words, b: Words) -> Words:
    low = a[0] + b[0]
    return low, a[1] + b[1] + (low < a[0]).astype(jnp.uint32)


def _times(a: Words, factor: int) -> Words:
    """The product with a constant, modulo 2**64."""
    low, high = (jnp.uint32(word) for word in (factor & 0xFFFFFFFF, factor >> 32))
    mine, theirs = (a[0] & 0xFFFF, a[0] >> 16), (low & 0xFFFF, low >> 16)
    middle = mine[1] * theirs[0] + (mine[0] * theirs[0] >> 16)
    other = mine[0] * theirs[1] + (middle & 0xFFFF)
    upper = mine[1] * theirs[1] + (middle >> 16) + (other >> 16)
    return a[0] * low, upper + a[0] * high + a[1] * low


def _in_place_of(words: Words, unwanted: int, other: int) -> Words:
    """Words with another number in place of one."""
    found = (words[0] == jnp.uint32(unwanted & 0xFFFFFFFF)) & (words[1] == jnp.uint32(unwanted >> 32))
    put: Words = jax.tree.map(lambda new, word: jnp.where(found, new, word), _constant(other, words), words)
    return put
