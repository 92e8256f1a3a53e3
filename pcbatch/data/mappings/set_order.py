"""The order in which Python goes over a set of integers.

It is no accident: the hash of an integer is the integer, and the order is that of the places in CPython's table, which
has grown by the same rule at the same numbers of elements in every version since 3.7. So the table is made again, of
the elements in the order in which they were added: insertions that meet a place in use look at the nine behind it, then
jump. That holds only while nothing has been removed, and no set was made of another one.
"""

from __future__ import annotations

from collections.abc import Iterator

import jax
import jax.numpy as jnp

from pcbatch.data.values import Index, Value

LINEAR_PROBES = 9
FIRST = 8  # places of a new table
LARGE = 50000  # elements from which on a table only doubles


def stages(capacity: int) -> Iterator[tuple[int, int]]:
    """Yield the sizes of the table of a set that grows, each with the number of elements at which it grows again."""
    size = FIRST
    while True:
        limit = -(-(size - 1) * 3 // 5)  # the least `fill` with `fill * 5 >= mask * 3`
        yield size, limit
        if limit > capacity:
            return
        wanted = limit * (2 if limit > LARGE else 4)
        size = FIRST
        while size <= wanted:
            size *= 2


def python_order(keys: Value, count: Index) -> Value:
    """Return the order in which Python goes over a set.

    Args:
        keys: int32[capacity], the elements in the order in which they were added; those behind `count` are arbitrary.
        count: int32[], their number.

    Returns:
        int32[capacity]: numbers of elements, those of the set first.
    """
    capacity = keys.shape[0]
    places = jnp.arange(capacity, dtype=jnp.int32)
    keys = keys.astype(jnp.int32)
    hashes = jnp.where(keys == -1, -2, keys)
    order, before = places, 0
    for size, limit in stages(capacity):
        sequence = jnp.where(places < before, order, places)
        table = _filled(hashes, sequence, jnp.minimum(count, min(limit, capacity)), size)
        used = table >= 0
        rank = jnp.where(used, jnp.cumsum(used) - 1, capacity)
        found = places.at[rank].set(table, mode="drop")
        order = jnp.where(count >= before, found, order)
        before = limit
    return order


def _filled(hashes: Value, sequence: Value, count: Index, size: int) -> Value:
    """A table int32[size] of elements that are inserted one after the other, -1 where it is empty."""

    def insert(k: Index, table: Value) -> Value:
        element = sequence[k]
        return table.at[_place(table, hashes[element], size)].set(element)

    table: Value = jax.lax.fori_loop(0, count, insert, jnp.full((size,), -1, jnp.int32))
    return table


def _place(table: Value, hash_: Value, size: int) -> Value:
    """The place of a new element; a hash is extended to 64 bits, of which the upper 32 are its sign."""
    mask = jnp.uint32(size - 1)
    offsets = jnp.arange(LINEAR_PROBES + 1, dtype=jnp.uint32)

    def look(start: Index) -> tuple[Value, Value]:
        window = jnp.where(start + LINEAR_PROBES <= mask, offsets, 0) + start
        free = table[window.astype(jnp.int32)] < 0
        return jnp.any(free), window[jnp.argmax(free)]

    def jump(state: tuple[Value, ...]) -> tuple[Value, ...]:
        _, start, _, low, high = state
        low, high = (low >> 5) | (high << 27), high >> 5
        start = (start * 5 + 1 + low) & mask
        return (*look(start)[:1], start, look(start)[1], low, high)

    low = hash_.astype(jnp.uint32)
    high = jnp.where(hash_ < 0, jnp.uint32(0xFFFFFFFF), jnp.uint32(0))
    found, place = look(low & mask)
    state = jax.lax.while_loop(lambda state: ~state[0], jump, (found, low & mask, place, low, high))
    return state[2].astype(jnp.int32)
