"""The common part of dicts and sets of the lane: entries in a hash table, under keys that belong to the lane."""

from __future__ import annotations

from typing import Self

import jax
import jax.numpy as jnp

from pcbatch.data.aliasing import holds_same
from pcbatch.data.capacity import entries, rounded
from pcbatch.data.catalogue import Facts
from pcbatch.data.checks import ENTRIES, INNER_ENTRIES, limit, require_room
from pcbatch.data.columns import same_leaves
from pcbatch.data.elements import as_element, join_origins, origins_of, unify
from pcbatch.data.mappings import key_equality
from pcbatch.data.mappings import keys as lane_keys
from pcbatch.data.mappings.hash_table import HashTable, KeyPlace, in_places, storing_all
from pcbatch.data.mappings.key_objects import as_objects
from pcbatch.data.mappings.stored_table import MIXED, REMOVED, Origins, StoredTable
from pcbatch.data.optional import Optional
from pcbatch.data.origins import note, number
from pcbatch.data.sequences import list_order
from pcbatch.data.sequences.lane_list import LaneList
from pcbatch.data.stored import inner_parts, is_stored
from pcbatch.data.values import Flag, Index, Value

TOO_LARGE = "an integer key is too large for the floats of the other keys"


class Entries(StoredTable):
    """The entries of a dict or set of the lane: a mutable object while a primitive is traced."""

    # Reading.

    @property
    def count(self) -> Index:
        """The number of entries, int32[]."""
        return jnp.int32(0) if self.table is None else self.table.count

    @property
    def capacity(self) -> int:
        """The number of entries that there is room for."""
        return self._start() if self.table is None else self.table.capacity

    @property
    def length(self) -> Index:
        """The number of entries, as of `len`."""
        return 0 if self.table is None else number(self.count)

    def contains(self, key: Value) -> Value:
        """Return `key in` the dict or set; None is in none that a lane has stored it in."""
        if isinstance(key, Optional):
            return number(jnp.logical_and(key.present, self.contains(key.value)))
        key = lane_keys.hashable(key)
        return False if self.table is None else number(self._find(key).present)

    def _find(self, key: Value) -> KeyPlace:
        """The place of a key; it is looked up once as long as nothing is stored."""
        assert self.table is not None
        leaves = jax.tree.leaves(key)
        if self._found is not None and self._found[1] is self.table:
            known = self._found[0]
            if len(known) == len(leaves) and all(x is y for x, y in zip(known, leaves, strict=True)):
                return self._found[2]
        place = self.table.find(lane_keys.hashable(key))
        there = jax.tree.map(lambda leaf: leaf[place.bucket, place.column], self.table.keys)
        key_equality.require_unchanged(there, place.present)
        self._found = (leaves, self.table, place)
        return place

    def _columns(self, part: Value, origins: Origins) -> LaneList:
        """Keys or values in their order, as a list of the lane."""
        if self.table is None:
            return LaneList.from_list([])  # type: ignore[no-any-return]
        key_equality.require_unchanged(part, self.table.live)
        columns, part = as_objects(self.table.entries(part)), as_objects(part)
        values: LaneList = LaneList.tree_unflatten(origins, (columns, self.table.count))
        if not any(is_stored(part) and not lane_keys.is_row(part) for part in inner_parts(columns)):
            unordered = holds_same(LaneList.tree_unflatten(origins, (in_places(part), self.table.count)), self)
            values.source = columns, unordered, self.table.place_of
        return holds_same(values, self)

    def keys_list(self) -> LaneList:
        """Return the keys in the order of insertion."""
        return self._columns(None if self.table is None else self.table.keys, self.key_origins)

    def as_list(self) -> LaneList:
        """Return the keys in the order in which Python goes over them."""
        return self.keys_list()

    def gone_over(self) -> LaneList:
        """Return the list of the keys."""
        return self.as_list()

    def _noted_key(self, key: Value) -> Value:
        leaves, tree = jax.tree.flatten(as_objects(key), is_leaf=lane_keys.is_row)
        return jax.tree.unflatten(
            tree, [note(leaf, origin) for leaf, origin in zip(leaves, self.key_origins, strict=True)]
        )

    # Changing.

    def _make_table(self, key: Value, value: Value, room: int = 0) -> None:
        size = max(self._start(), rounded(room))
        self.table = HashTable.empty(key, value, size)
        self.key_origins, self.value_origins = _key_origins(key), origins_of(as_element(value))

    def _start(self) -> int:
        """The number of entries that one that gets its first one has room for."""
        return entries(inside=bool(self.place))

    def _require_room(self, full: Flag) -> None:
        assert self.table is not None
        size = self.table.capacity
        require_room(jnp.where(full, size + 1, 0), size, INNER_ENTRIES if self.place else ENTRIES)

    def _reserve(self) -> None:
        """Give a table that is an argument, which holds no more than it did, the room of those that are made here."""
        table, size = self.table, self._start()
        if table is not None and table.capacity < size:
            self.table = table.rebuilt(table.keys, table.values, size)

    def _fit(self, key: Value, value: Value) -> Value:
        """Give the table types that cover a key and a value; return the value with the type of the values."""
        key = as_element(lane_keys.plain(lane_keys.hashable(key)))
        lane_keys.require_no_nan(key)
        if self.table is None:
            self._make_table(key, value)
        self._reserve()
        assert self.table is not None
        value = as_element(value)
        keys = as_objects(self.table.keys)
        self.key_origins = join_origins(keys, self.key_origins, as_objects(key), _key_origins(key))
        self.value_origins = join_origins(self.table.values, self.value_origins, value, origins_of(value))
        before = self.table
        table, value = before.with_types(key, value)
        if not same_leaves(before, table):
            self.table = table
        found = key_equality.fitted(key, table.keys)
        limit(found is not None and found[1], TOO_LARGE)
        return value

    def store(self, key: Value, value: Value, where: Flag = True, known_elsewhere: bool = True) -> None:
        """Give a key a value where a condition holds; a key that is there stays.

        `known_elsewhere`: whether the value may be an object of the program's; else it is one that this dict has made.
        """
        key = lane_keys.hashable(key)
        self._note_added()
        if known_elsewhere:
            self.hold(value)
        value = self._fit(key, value)
        assert self.table is not None
        place = self._find(key)
        self.table, full = self.table.store(place, key, value, where)
        self._require_room(full)

    def _note_added(self) -> None:
        if self.history == REMOVED:
            self.history = MIXED

    def drop(self, key: Value) -> Value:
        """Remove a key if it is there; return whether it was."""
        key = lane_keys.hashable(key)
        if self.table is None:
            return False
        place = self._find(key)
        self.table, self.history = self.table.remove(place), min(self.history, REMOVED)
        return place.present

    @Facts(changes=True, only_drops=True)
    def clear(self) -> None:
        """Remove all entries, in place."""
        if self.table is not None:
            self.table = self.table.emptied()

    def copy(self) -> Self:
        """Return a dict or set with the same entries."""
        new: Self = holds_same(jax.tree.map(lambda leaf: leaf, self.with_table(self.table)), self)
        new.hold(self.inner_objects())
        return new

    def __copy__(self) -> Self:
        return self.copy()

    def inner_objects(self) -> tuple[Value, ...]:
        """Return the mutable objects that are values of entries."""
        return self.held

    def _store_list(self, keys: LaneList, values: Value) -> None:
        """Store the keys of a list, each with the value at the same index of another list (None for a set)."""
        if values is not None:
            self.hold(values.elements_in(values))
        if isinstance(keys.length, int) and keys.length == 0:
            return
        self._note_added()
        if isinstance(keys.columns, Optional):
            used = jnp.arange(keys.capacity, dtype=jnp.int32) < keys.length
            limit(jnp.all(keys.columns.present | ~used), lane_keys.NONE_KEY)
            keys = keys.with_data(keys.columns.value, keys.length, keys.origins)
        key = jax.tree.map(lambda leaf: leaf[0], keys.columns)
        value = None if values is None else jax.tree.map(lambda leaf: leaf[0], values.columns)
        key = lane_keys.hashable(key)
        where = jnp.arange(keys.capacity, dtype=jnp.int32) < keys.length
        columns = lane_keys.plain(keys.columns)
        limit(jnp.all(list_order.not_(lane_keys.is_nan(columns)) | ~where), lane_keys.NAN_KEY)
        if self.table is None:
            self._make_table(key, value, keys.length if isinstance(keys.length, int) else 0)
            self.key_origins = keys.origins
            self.value_origins = () if values is None else values.origins
        self._reserve()
        assert self.table is not None
        self.key_origins = join_origins(as_objects(self.table.keys), self.key_origins, as_objects(key), keys.origins)
        if values is not None:
            self.value_origins = join_origins(self.table.values, self.value_origins, value, values.origins)
        self.table, _ = self.table.with_types(key, value)
        stored = self.table.keys
        key_equality.require_unchanged(stored, self.table.live)
        kept = jax.vmap(lambda key: jnp.asarray((key_equality.fitted(key, stored) or (0, False))[1]))(columns)
        limit(jnp.all(kept | ~where), TOO_LARGE)
        self.table = storing_all(self.table, columns, None if values is None else _typed(self.table, values), where)

    def _found_in(self, other: Value) -> Value:
        """The mask of the places of this table that have a key that is in another dict or set, bool[buckets, WIDTH]."""
        assert self.table is not None
        if other.table is None:
            return jnp.zeros(self.table.shape, bool)
        for table in (self.table, other.table):
            key_equality.require_unchanged(table.keys, table.live)
        return self.table.entries_that(lambda key, value: other.table.find(key).present)


def _key_origins(key: Value) -> Origins:
    return origins_of(as_objects(lane_keys.plain(key)))


def _typed(table: HashTable, values: LaneList) -> Value:
    """The columns of values with the type of a table's values."""
    return unify(table.values, table.shape, values.columns, (values.capacity,))[1]
