"""The arithmetic of `collections.Counter`, for dicts of the lane that are one.

Counter(a=3, b=1) - Counter(a=1, b=2)     Counter({"a": 2}): counts that are not above zero are dropped
Counter(a=0) == Counter()                 True: a key that is missing has the count 0
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import jax
import jax.numpy as jnp

from pcbatch.data.capacity import capacity as start_capacity
from pcbatch.data.checks import require_room
from pcbatch.data.columns import taken
from pcbatch.data.mappings import keys as lane_keys
from pcbatch.data.mappings.entries import Entries
from pcbatch.data.origins import number
from pcbatch.data.sequences.lane_list import LaneList
from pcbatch.data.stored import parts
from pcbatch.data.values import Index, Value
from pcbatch.diagnostics.lane_words import type_name
from pcbatch.errors import Refusal

OPERATORS: dict[str, Callable[[Value, Value], Value]] = {
    "+": jnp.add,
    "-": jnp.subtract,
    "|": jnp.maximum,
    "&": jnp.minimum,
}


class Counts(Entries):
    """Entries that count where they are a `Counter`."""

    @property
    def is_counter(self) -> bool:
        """Whether this is a `Counter`."""
        return self.missing is not None and self.missing.name == "Counter"

    def count_all(self, keys: LaneList, counts: LaneList | None, combine: Callable[[Value, Value], Value]) -> None:
        """Combine the counts of keys with others, 1 if there are none, one by one: a key may be there several times."""
        if isinstance(keys.length, int) and keys.length == 0:
            return
        one = 0 if counts is None else jax.tree.map(lambda leaf: leaf[0], counts.columns)
        first = jax.tree.map(lambda leaf: leaf[0], keys.columns)
        if self.table is None:
            self._make_table(first, one)
            self.key_origins = keys.origins
        self._fit(first, one)
        assert self.table is not None
        where = jnp.arange(keys.capacity, dtype=jnp.int32) < keys.length
        dtype = self.table.values.dtype

        def step(k: Index, state: Value) -> Value:
            table, full = state
            key = jax.tree.map(lambda leaf: leaf[k], lane_keys.plain(keys.columns))
            place = table.find(key)
            count = jnp.where(place.present, table.values[place.bucket, place.column], 0)
            new = combine(count, 1 if counts is None else counts.columns[k])
            table, more = table.store(place, key, new.astype(dtype), where[k])
            return table, full | more

        last = jnp.minimum(keys.length, keys.capacity)
        self.table, full = jax.lax.fori_loop(0, last, step, (self.table, jnp.bool_(False)))
        self._require_room(full)

    def combine(self, other: Value, operator: str) -> Value:
        """Combine the counts with those of another `Counter`, in place, and keep those above zero; return this."""
        other = self._counter(other, operator)
        if operator == "&":
            self._replace_counts(lambda key, count: jnp.minimum(count, _count_of(other, key)))
        elif other.table is not None:
            pairs = other.items_list()
            self.count_all(part_of(pairs, 0), part_of(pairs, 1), OPERATORS[operator])
        if self.table is not None:
            self.table = self.table.kept(self.table.live & (self.table.values > 0))
        return self

    def combined(self, other: Value, operator: str) -> Value:
        """Return the `Counter` of combined counts."""
        return self.copy().combine(other, operator)

    def counts_as(self, other: Value) -> Value:
        """Return whether another `Counter` has the counts of this one for all of its keys."""
        if self.table is None:
            return True
        same = self._by_key(lambda key, count: count == _count_of(other, key))
        return number(jnp.all(same | ~self.table.live))

    def __add__(self, other: Value) -> Value:
        return self.combined(other, "+") if self.is_counter else NotImplemented

    def __iadd__(self, other: Value) -> Value:
        return self.combine(other, "+") if self.is_counter else NotImplemented

    def __sub__(self, other: Value) -> Value:
        return self.combined(other, "-") if self.is_counter else NotImplemented

    def __isub__(self, other: Value) -> Value:
        return self.combine(other, "-") if self.is_counter else NotImplemented

    def __and__(self, other: Value) -> Value:
        return self.combined(other, "&") if self.is_counter else NotImplemented

    def __iand__(self, other: Value) -> Value:
        return self.combine(other, "&") if self.is_counter else NotImplemented

    def most_common(self, n: Index = None) -> LaneList:
        """Return the pairs of keys and counts, the most frequent first."""
        pairs = self.items_list()
        pairs.sort(key=lambda pair: pair[1], reverse=True)
        return pairs if n is None else pairs[:n]

    def elements(self) -> LaneList:
        """Return the list of the keys, each as often as it counts: not at all where that is not above zero."""
        keys = self.keys_list()
        if self.table is None:
            return keys
        counts = part_of(self.items_list(), 1)
        if not jnp.issubdtype(counts.columns.dtype, jnp.integer):
            raise TypeError("'float' object cannot be interpreted as an integer")
        size = start_capacity()
        times = jnp.where(counts._valid(), jnp.clip(counts.columns, 0, size + 1), 0).astype(jnp.int32)
        ends = jnp.cumsum(times)
        require_room(ends[-1], size)
        places = jnp.searchsorted(ends, jnp.arange(size, dtype=jnp.int32), side="right")
        made: LaneList = LaneList.tree_unflatten(keys.origins, (taken(keys.columns, places), ends[-1]))
        return made

    def total(self) -> Value:
        """Return the sum of the counts."""
        if self.table is None:
            return 0
        return jnp.sum(jnp.where(self.table.live, self.table.values, 0))

    def items_list(self) -> LaneList:
        """Return the pairs of keys and values in the order of insertion."""
        pair = None if self.table is None else (self.table.keys, self.table.values)
        pairs = self._columns(pair, (*self.key_origins, *self.value_origins))
        pairs.hold(self.inner_objects())
        return pairs

    def _counter(self, other: Value, operator: str) -> Value:
        if isinstance(other, dict):
            other = type(self).known(other, self.missing)  # type: ignore[attr-defined]
        if not isinstance(other, Counts) or not other.is_counter:
            title = f"`{operator}` of a `Counter` and {type_name(other)} of the lane"
            raise Refusal("PCB304", title, helps=("make both a `Counter`: `Counter(d)`",))
        return other

    def _by_key(self, fn: Callable[[Value, Value], Value]) -> Value:
        """The values of a function of key and count at each place, [buckets, places]."""
        assert self.table is not None
        return jax.vmap(jax.vmap(fn))(self.table.keys, self.table.values)

    def _replace_counts(self, fn: Callable[[Value, Value], Value]) -> None:
        if self.table is not None:
            new = self._by_key(fn).astype(self.table.values.dtype)
            self.table = replace(self.table, values=new)


def _count_of(counter: Value, key: Value) -> Value:
    if counter.table is None:
        return 0
    place = counter.table.find(key)
    return jnp.where(place.present, counter.table.values[place.bucket, place.column], 0)


def part_of(pairs: LaneList, k: int) -> LaneList:
    """The list of the first or second elements of pairs."""
    columns = pairs.columns
    first = len(parts(columns[0]))
    origins = pairs.origins[:first] if k == 0 else pairs.origins[first:]
    part: LaneList = LaneList.tree_unflatten(origins, (columns[k], pairs.length))
    if k == 1:
        part.hold(pairs.held)
    return part
