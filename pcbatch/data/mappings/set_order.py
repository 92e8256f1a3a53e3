"""The order in which Python goes over a set of integers, or of tuples of them.

It is no accident: their hashes are the same in every run, and the order is that of the places in CPython's table, which
has grown by the same rule at the same numbers of elements in every version since 3.7. So the table is made again, of
the elements in the order in which they were added: insertions that meet a place in use look at the nine behind it, then
jump. That holds while nothing is added after a removal, and for sets that were not made of others.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

import jax
import jax.numpy as jnp

from pcbatch.data.by_width import by_width
from pcbatch.data.mappings.python_hashes import python_hashes
from pcbatch.data.row_search import first_row
from pcbatch.data.values import Columns, Flag, Index, Value

LINEAR_PROBES = 9
FIRST = 8  # places of a new table
ALONE = 4  # elements that fit into it, however a set got them
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


def python_order(keys: Columns, count: Index, live: Flag = True) -> Value:
    """Return the order in which Python goes over a set.

    Args:
        keys: columns [capacity] of elements in the order in which they were added; those behind `count` are arbitrary.
        count: int32[], their number.
        live: bool[capacity], those that have not been removed since.

    Returns:
        int32[capacity]: numbers of elements, those of the set first.
    """
    hashes = _hashes(keys)
    count = jnp.asarray(count, jnp.int32)
    if live is True:
        return by_width(_order_together, _order_alone)(hashes, count)
    return by_width(_left_together, _left_alone)(hashes, count, live)


def _hashes(keys: Columns) -> Value:
    """Return the hashes of keys, those of short integers as they are."""
    dtype = getattr(keys, "dtype", None)
    if dtype is None or dtype.itemsize > 4 or dtype == jnp.uint32:
        return python_hashes(keys)
    keys = keys.astype(jnp.int32)
    return jnp.where(keys == -1, -2, keys)


def _order_together(hashes: Value, count: Index) -> Value:
    capacity = _capacity(hashes)
    places = jnp.arange(capacity, dtype=jnp.int32)
    order, before = places, 0
    for size, limit in stages(capacity):
        table = _filled(hashes, order, before, jnp.minimum(count, min(limit, capacity)), size, _place)
        used = table >= 0
        rank = jnp.where(used, jnp.cumsum(used) - 1, capacity)
        found = places.at[rank].set(table, mode="drop")
        order = jnp.where(count >= before, found, order)
        before = limit
    return order


def _capacity(hashes: Value) -> int:
    return int(jax.tree.leaves(hashes)[0].shape[0])


def _order_alone(hashes: Value, count: Index) -> Value:
    capacity = _capacity(hashes)
    order, before = jnp.arange(capacity, dtype=jnp.int32), 0
    for size, limit in stages(capacity):
        some = jnp.where(count >= before, jnp.minimum(count, min(limit, capacity)), 0)
        table = _filled(hashes, order, before, some, size, _place_alone)
        order = _compacted(table, order, jnp.where(some > 0, size, 0))
        before = limit
    return order


def _compacted(table: Value, order: Value, stop: Index) -> Value:
    """Return numbers whose first ones are those in the places of a table before `stop` that are in use."""

    def next_from(place: Index) -> Value:
        return first_row(lambda element: element >= 0, table, stop, place)

    def step(state: tuple[Value, ...]) -> tuple[Value, ...]:
        place, k, order = state
        return next_from(place + 1), k + 1, order.at[k].set(table[place])

    return jax.lax.while_loop(lambda state: state[0] < stop, step, (next_from(0), jnp.int32(0), order))[2]


def _left_together(hashes: Value, count: Index, live: Flag) -> Value:
    order = _order_together(hashes, count)
    return order[jnp.argsort(~live[order])]


def _left_alone(hashes: Value, count: Index, live: Flag) -> Value:
    order = _order_alone(hashes, count)

    def step(k: Index, state: tuple[Value, Value]) -> tuple[Value, Value]:
        left, n = state
        element = order[k]
        return left.at[n].set(element), n + live[element].astype(jnp.int32)

    return jax.lax.fori_loop(0, count, step, (order, jnp.int32(0)))[0]


def _filled(
    hashes: Value,
    order: Value,
    before: int,
    count: Index,
    size: int,
    place_in: Callable[[Value, Value, int], Value],
) -> Value:
    """A table int32[size] of elements that are inserted one after the other, -1 where it is empty: the first `before`
    in some order, the others in their own."""

    def insert(k: Index, table: Value) -> Value:
        element = jnp.where(k < before, order[k], k)
        hash_ = jax.tree.map(lambda column: column[element], hashes)
        return table.at[place_in(table, hash_, size)].set(element)

    table: Value = jax.lax.fori_loop(0, count, insert, jnp.full((size,), -1, jnp.int32))
    return table


def _words(hash_: Value) -> tuple[Value, Value]:
    """The lower and the upper 32 bits of a hash; a short one is extended to 64, the upper ones are its sign."""
    if isinstance(hash_, tuple):
        return hash_
    return hash_.astype(jnp.uint32), jnp.where(hash_ < 0, jnp.uint32(0xFFFFFFFF), jnp.uint32(0))


def _place_alone(table: Value, hash_: Value, size: int) -> Value:
    """The place of a new element, as `_place` finds it, by one look after the other."""
    mask = jnp.uint32(size - 1)
    low, high = _words(hash_)

    def is_taken(state: tuple[Value, ...]) -> Value:
        return table[(state[0] + state[1]).astype(jnp.int32)] >= 0

    def go_on(state: tuple[Value, ...]) -> tuple[Value, ...]:
        start, k, low, high = state
        behind = (k < LINEAR_PROBES) & (start + LINEAR_PROBES <= mask)
        rest = (low >> 5) | (high << 27)
        jump = (start * 5 + 1 + rest) & mask
        return (
            jnp.where(behind, start, jump),
            jnp.where(behind, k + 1, 0),
            jnp.where(behind, low, rest),
            jnp.where(behind, high, high >> 5),
        )

    start, k, _, _ = jax.lax.while_loop(is_taken, go_on, (low & mask, jnp.uint32(0), low, high))
    return (start + k).astype(jnp.int32)


def _place(table: Value, hash_: Value, size: int) -> Value:
    """The place of a new element, by a look at all places behind the first one at a time."""
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

    low, high = _words(hash_)
    found, place = look(low & mask)
    state = jax.lax.while_loop(lambda state: ~state[0], jump, (found, low & mask, place, low, high))
    return state[2].astype(jnp.int32)
