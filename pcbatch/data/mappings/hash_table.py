"""The storage of dicts and sets of the lane: a hash table of buckets, with two buckets for each key.

A key lies in one of two buckets of eight places, which its hash names; a new one goes into the first of them, or
where that has four, into the one in which a place further in front is free (`bucket_search.in_second`). So a look-up
reads two rows of the table and has no loop. As many lanes run side by side, the slowest look-up would be the time of
all in a table that is probed one place after the other; with two choices, hardly ever is a bucket full in a table
that is half full. Then the table counts as full.

A place that is in use has a stamp, the number of insertions before it, which gives the order of the entries. One
that a set has lost keeps it as a negative number, as Python's order of the others depends on it. Behind a place of a
bucket that was never in use no other one was: there a lane alone ends its search. Every store is a scatter of one
place, so that the machine stores in place (`runtime/vm/indexed_access.py`).

Microseconds of a CPU's core for 1024 increments `d[k] = d.get(k, 0) + 1`, one in each of 1024 lanes; the other rows are
written by hand with arrays, without checks, deletions and a number of entries:

    capacity                              32     64    1024
    a dict of the lane                    -     105     353
    two buckets, by hand                  30     31     133
    places probed one by one, in a loop   36     35     646
    all keys compared                     39     53     981
    an array indexed by the key            4      4      26
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import reduce

import jax
import jax.numpy as jnp
import numpy as np

from pcbatch.data.by_width import by_width
from pcbatch.data.capacity import rounded
from pcbatch.data.checks import TABLE, collecting, going_on, making, require_room
from pcbatch.data.columns import Shape, leaf_at, put, row, same_leaves, with_row
from pcbatch.data.conditional_stores import put_where
from pcbatch.data.elements import as_element, blank, unify
from pcbatch.data.mappings import key_equality, key_hashes
from pcbatch.data.mappings import keys as lane_keys
from pcbatch.data.mappings.bucket_search import WIDTH, buckets_of, in_second, places_alone, places_together
from pcbatch.data.mappings.stamps import FREE, HOLE, by_stamp, last_stamp_again, ranks, stamps_without_gap
from pcbatch.data.pytree_node import pytree_node
from pcbatch.data.row_search import first_row
from pcbatch.data.values import Column, Flag, Index, Value

SPARE = 2  # places for each element that there is room for


def buckets_for(capacity: int) -> int:
    """Return the number of buckets of a table with room for so many entries."""
    return rounded(-(-SPARE * capacity // WIDTH))


@dataclass(frozen=True, slots=True)
class KeyPlace:
    """The place of a key in a table: where it is, or would be stored.

    Attributes:
        bucket: int32[].
        column: int32[], the place in the bucket.
        present: bool[], whether the key is there.
        full: bool[], whether both of its buckets are full.
        stamp: int32[], the stamp at the place.
    """

    bucket: Index
    column: Index
    present: Flag
    full: Flag
    stamp: Index


@dataclass(frozen=True, slots=True)
class Window:
    """A place among tables that lie in the columns of another container, at which one key is looked for and stored in
    all of them, so that the table there need not be moved.

    Attributes:
        before: the tables as they were when the one at the place was read.
        tables: the tables, whose leaves have the axes of the containers around them in front.
        place: the indices along these axes.
    """

    before: HashTable
    tables: HashTable
    place: tuple[Index, ...]


@pytree_node("keys", "values", "stamps", "count", "clock", static="capacity")
@dataclass(frozen=True, slots=True)
class HashTable:
    """A hash table: a value, which operations replace.

    Attributes:
        keys: the key, with columns [buckets, WIDTH] as leaves.
        values: the value, with columns [buckets, WIDTH, ...] as leaves; None for a set.
        stamps: int32[buckets, WIDTH], negative where a place is free: `FREE`, `HOLE`, or -2 - stamp of a set.
        count: int32[], the number of entries.
        clock: int32[], the next stamp.
        capacity: the number of entries that there is room for.
        window: where the table lies among others, as long as it is what is there; no part of the pytree.
    """

    keys: Value
    values: Value
    stamps: Column
    count: Index
    clock: Value
    capacity: int
    window: Window | None = None

    @classmethod
    def empty(cls, key: Value, value: Value, capacity: int) -> HashTable:
        """Return a table without entries for keys and values like these."""
        key, shape = lane_keys.plain(key), (buckets_for(capacity), WIDTH)
        zero = jnp.int32(0)
        stamps = jnp.full(shape, FREE, jnp.int32)
        return cls(blank(key, (), shape), blank(as_element(value), (), shape), stamps, zero, zero, capacity)

    def at(self, place: tuple[Index, ...], before: HashTable | None = None) -> HashTable:
        """Return one of these tables, whose leaves have axes in front; `before` are those that it was read from."""
        one: HashTable = jax.tree.map(lambda leaf: leaf_at(leaf, place), self)
        return replace(one, window=Window(before or self, self, place)) if self.stamps.size else one

    @property
    def _around(self) -> tuple[HashTable, tuple[Index, ...]]:
        """The tables among which this one lies, and its indices there; else the table itself."""
        return (self, ()) if self.window is None else (self.window.tables, self.window.place)

    def _changed(self, count: Value, clock: Value, **parts: Value) -> HashTable:
        """The table after a change of it: `parts` are those of all tables among which it lies."""
        tables, place = self._around
        if self.window is None:
            return replace(self, count=count, clock=clock, **parts)
        state = {"count": put(tables.count, place, count), "clock": put(tables.clock, place, clock)}
        return replace(tables, **state, **parts).at(place, self.window.before)

    def _restamped(self, stamps: Column, count: Value, clock: Value) -> HashTable:
        """The table with other stamps of its own."""
        tables, place = self._around
        return self._changed(count, clock, stamps=put(tables.stamps, place, stamps) if place else stamps)

    @property
    def shape(self) -> tuple[int, int]:
        """The numbers of buckets and of the places of one."""
        return self.stamps.shape  # type: ignore[no-any-return]

    @property
    def live(self) -> Value:
        """bool[buckets, WIDTH], the places that are in use."""
        return self.stamps >= 0

    def find(self, key: Value) -> KeyPlace:
        """Return the place of a key; one that cannot be equal to any key of the table is not present."""
        found = key_equality.fitted(lane_keys.plain(key), self.keys)
        if found is None:
            zero = jnp.int32(0)
            return KeyPlace(zero, zero, jnp.bool_(False), jnp.bool_(False), jnp.int32(FREE))
        tables, around = self._around
        columns, leaves = lane_keys.parts(tables.keys)[0], lane_keys.parts(found[0])[0]
        kept = [] if found[1] is True else [found[1]]
        *buckets, start = buckets_of(key_hashes.hashed(leaves), self.shape[0])
        places = by_width(places_together, places_alone)(tables.stamps, columns, leaves, kept, buckets, start, around)
        other = in_second(places)
        place = jnp.where(other, places[1], places[0])
        bucket, column = jnp.where(other, buckets[1], buckets[0]), (place + start) & (WIDTH - 1)
        return KeyPlace(bucket, column, place < WIDTH, place >= 2 * WIDTH, tables.stamps[*around, bucket, column])

    def store(self, place: KeyPlace, key: Value, value: Value, where: Flag = True) -> tuple[HashTable, Value]:
        """Return a table in which a key has a value, and whether there was no room for it; an old key stays.

        Args:
            place: the place of the key.
            key: the key, of the type of the table.
            value: the value, of the type of the table.
            where: bool[], whether to store at all.
        """
        where = going_on(where)
        new = jnp.logical_not(place.present) & where
        full = new & (place.full | (self.count >= self.capacity))
        new = new & ~full
        tables, around = self._around
        at = (*around, place.bucket, place.column)
        found = key_equality.fitted(lane_keys.plain(key), self.keys)
        assert found is not None
        keys = put_where(tables.keys, at, found[0], new)
        stamps = put_where(tables.stamps, at, self.clock, new)
        values = put_where(tables.values, at, value, new | (place.present & where))
        one = new.astype(jnp.int32)
        parts = {"keys": keys, "values": values, "stamps": stamps}
        return self._changed(self.count + one, self.clock + one, **parts), full

    def remove(self, place: KeyPlace, where: Flag = True) -> HashTable:
        """Return a table without the entry at a place; nothing changes where its key is not present."""
        gone = place.present & going_on(where)
        tables, around = self._around
        free = jnp.int32(HOLE) if self.values is not None else -2 - place.stamp
        at = (*around, place.bucket, place.column)
        count = self.count - gone.astype(jnp.int32)
        if self.values is None:
            stamps, clock = last_stamp_again(put_where(tables.stamps, at, free, gone), self.clock, place.stamp, gone)
            return self._changed(count, jnp.where(count == 0, 0, clock), stamps=stamps)
        mine = put_where(self.stamps, at[len(around) :], free, gone)
        mine, clock = by_width(last_stamp_again, stamps_without_gap)(mine, self.clock, place.stamp, gone, self.count)
        return self._restamped(mine, count, jnp.where(count == 0, 0, clock))

    def emptied(self) -> HashTable:
        """Return a table of the same types without entries."""
        if going_on() is not True:
            return self.kept(jnp.zeros(self.shape, bool))
        zero = jnp.int32(0)
        return self._restamped(jnp.full(self.shape, FREE, jnp.int32), zero, zero)

    def kept(self, keep: Flag) -> HashTable:
        """Return a table with the entries at some places, bool[buckets, WIDTH]."""
        keep = keep if (here := going_on()) is True else keep | ~here
        stamps = jnp.where(keep | (self.stamps == FREE), self.stamps, HOLE)
        count = jnp.sum(stamps >= 0, dtype=jnp.int32)
        return self._restamped(stamps, count, jnp.where(count == 0, 0, self.clock))

    def entries_that(self, hold: Callable[[Value, Value], Value]) -> Value:
        """Return the places whose key and value a condition holds for, bool[buckets, WIDTH]."""

        def together(entries: Value, live: Flag) -> Value:
            return live & jax.vmap(jax.vmap(hold))(*entries)

        def alone(entries: Value, live: Flag) -> Value:
            flat, here = in_places((entries, live))
            found = _for_live(here, lambda k, found: with_row(found, k, hold(*row(flat, k))), jnp.zeros_like(here))
            return found.reshape(live.shape)

        return by_width(together, alone)((self.keys, self.values), self.live)

    def place_of(self, index: Index) -> Value:
        """Return the number of the place of the entry at an index in the order of insertion."""
        stamps = ranks(self.stamps, self.clock != self.count)
        return jnp.min(jnp.where(stamps == index, jnp.arange(stamps.size, dtype=jnp.int32), stamps.size - 1))

    def entries(self, part: Value) -> Value:
        """Return keys or values in the order of insertion, with columns [capacity, ...] as leaves; what lies behind the
        last one may be anything."""

        return _in_order(in_places(part), ranks(self.stamps, self.clock != self.count), self.capacity)

    def in_any_order(self, part: Value) -> Value:
        """Return keys or values in the order of their places, which no function that is to see it may ask for; gaps in
        the order of insertion would be sorted out."""

        def together(places: Value, live: Flag) -> Value:
            return _in_order(places, jnp.where(live, jnp.cumsum(live, dtype=jnp.int32) - 1, -1), self.capacity)

        def alone(places: Value, live: Flag) -> Value:
            def step(k: Value, found: tuple[Value, Value]) -> tuple[Value, Value]:
                return with_row(found[0], found[1], row(places, k)), found[1] + 1

            return _for_live(live, step, (_noughts(places, self.capacity), jnp.int32(0)))[0]

        return by_width(together, alone)(in_places(part), self.live.reshape(-1))

    def added(self) -> tuple[Value, Value, Value]:
        """Return the keys of a set in the order of insertion, also the removed ones, their number, and who is there.

        It is known as long as nothing was added after a removal, whatever the number of entries.
        """
        stamps = self.stamps.reshape(-1)
        known = (stamps != FREE) & (stamps != HOLE)
        first = jnp.where(known, jnp.where(stamps < 0, -2 - stamps, stamps), -1)  # each number of an insertion once
        keys, live = _in_order((in_places(self.keys), stamps >= 0), first, self.capacity)
        return keys, jnp.sum(known, dtype=jnp.int32), live

    @making()
    def rebuilt(self, keys: Value, values: Value, capacity: int, lead: Shape = ()) -> HashTable:
        """Return a table of another capacity, or with keys of another dtype, with these entries.

        Args:
            keys: the keys with leaves [buckets, WIDTH].
            values: the values with leaves [buckets, WIDTH, ...].
            capacity: the number of entries that there is to be room for.
            lead: the axes in front of all leaves, where these are the tables of the elements of a container.
        """
        if lead:  # what lies where no element is has no entries
            stamps = jnp.where(jnp.expand_dims(self.count, (-1, -2)) > 0, self.stamps, FREE)
            one = HashTable(keys, values, stamps, self.count, self.clock, self.capacity)

            def again(table: HashTable) -> tuple[HashTable, Value]:
                with collecting() as checks:
                    made = table.rebuilt(table.keys, table.values, capacity, lead[1:])
                return made, reduce(jnp.logical_or, [check.failed for check in checks], jnp.bool_(False))

            table, full = jax.vmap(again)(one)
            require_room(jnp.where(jnp.any(full), capacity + 1, 0), capacity, TABLE)
            return table
        flat_keys, flat_values = in_places((keys, values))
        example: Value = jax.tree.map(lambda leaf: leaf[0], (flat_keys, flat_values))
        stamps = self.stamps.reshape(-1)
        table = HashTable.empty(example[0], example[1], capacity)
        table = storing_all(table, flat_keys, flat_values, stamps >= 0, stamps)
        return replace(table, clock=self.clock)

    def with_types(self, key: Value, value: Value) -> tuple[HashTable, Value]:
        """Return the table with types that cover a key and a value, too, and that value with the type of the values."""
        keys = lane_keys.covering(self.keys, self.shape, key)
        values, value = unify(self.values, self.shape, as_element(value), ())
        return self.retyped(keys, values, self.capacity, ()), value

    def retyped(self, keys: Value, values: Value, capacity: int, lead: Shape) -> HashTable:
        """Return the table with these keys and values at its places, of wider types, and another capacity."""
        if lane_keys.kinds(self.keys) == lane_keys.kinds(keys) and capacity == self.capacity:
            same = same_leaves((self.keys, self.values), (keys, values))
            return self if same else replace(self, keys=keys, values=values, window=None)
        return self.rebuilt(keys, values, capacity, lead)

    def unified(self, lead: Shape, other: HashTable, other_lead: Shape) -> tuple[HashTable, HashTable]:
        """Return this table and another one, or tables with these leads, with the type that covers both."""
        mine, theirs = (*lead, *self.stamps.shape[-2:]), (*other_lead, *other.stamps.shape[-2:])
        keys, other_keys = lane_keys.unified(self.keys, mine, other.keys, theirs)
        values, other_values = unify(self.values, mine, other.values, theirs)
        capacity = max(self.capacity, other.capacity)
        return self.retyped(keys, values, capacity, lead), other.retyped(other_keys, other_values, capacity, other_lead)

    def blanked(self, lead: Shape, new: Shape) -> HashTable:
        """Return empty tables of this type with another lead."""
        shape = self.stamps.shape[-2:]
        keys, values = (blank(part, (*lead, *shape), (*new, *shape)) for part in (self.keys, self.values))
        zeros = jnp.zeros(new, np.int32)
        return HashTable(keys, values, jnp.full((*new, *shape), FREE, jnp.int32), zeros, zeros, self.capacity)


def _in_order(places: Value, stamps: Column, size: int) -> Value:
    """The rows of places with the stamps 0, 1, 2, ..., so many, in this order."""

    def together(places: Value, stamps: Column) -> Value:
        order = by_stamp(stamps)[:size]
        return jax.tree.map(lambda leaf: leaf[order], places)

    def alone(places: Value, stamps: Column) -> Value:
        def step(k: Value, found: Value) -> Value:
            return with_row(found, row(stamps, k), row(places, k))

        return _for_live(stamps >= 0, step, _noughts(places, size))

    return by_width(together, alone)(places, stamps)


def _noughts(places: Value, size: int) -> Value:
    """So many rows of zeros, of the types of places."""
    return jax.tree.map(lambda leaf: jnp.zeros((size, *leaf.shape[1:]), leaf.dtype), places)


def _for_live(live: Flag, step: Callable[[Value, Value], Value], begin: Value) -> Value:
    """Return a pytree of arrays after a step for each place that is live, bool[places], one after the other."""

    def next_from(k: Index) -> Value:
        return first_row(lambda here: here, live, live.size, k)

    def body(c: tuple[Value, Value]) -> tuple[Value, Value]:
        return next_from(c[0] + 1), step(*c)

    return jax.lax.while_loop(lambda c: c[0] < live.size, body, (next_from(0), begin))[1]


def storing_all(table: HashTable, keys: Value, values: Value, where: Flag, ticks: Value = None) -> HashTable:
    """Return a table with more entries.

    Args:
        table: the table.
        keys: their keys, of the type of the table, with leaves [n].
        values: their values, with leaves [n, ...].
        where: bool[n], those that are to be stored.
        ticks: int32[n], their stamps in an empty table, where they are not 0, 1, 2, ...
    """

    def step(k: Index, state: tuple[HashTable, Value]) -> tuple[HashTable, Value]:
        table, full = state
        key, value = jax.tree.map(lambda leaf: leaf[k], (keys, values))
        if ticks is not None:
            table = replace(table, clock=ticks[k])
        table, more = table.store(table.find(key), key, value, where[k])
        return table, full | more

    size = where.shape[0]
    last = jnp.max(jnp.where(where, jnp.arange(size) + 1, 0), initial=0).astype(jnp.int32)
    table, full = jax.lax.fori_loop(0, last, step, (table, jnp.bool_(False)))
    require_room(jnp.where(full, table.capacity + 1, 0), table.capacity, TABLE)
    return table


def in_places(part: Value) -> Value:
    """Return keys or values of a table with one axis for all places."""
    return jax.tree.map(lambda leaf: leaf.reshape(-1, *leaf.shape[2:]), part)
