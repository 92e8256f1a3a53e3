"""Dicts of the lane: mutable objects with the methods of Python's dicts, `Counter` and `defaultdict` among them."""

from __future__ import annotations

from collections import Counter, OrderedDict, defaultdict, deque
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from functools import partial
from types import FunctionType, ModuleType
from typing import Any, Self

import jax
import jax.numpy as jnp

from pcbatch.data.aliasing import note_value, one_of
from pcbatch.data.catalogue import Facts
from pcbatch.data.checks import making, require
from pcbatch.data.container import Container, for_kind
from pcbatch.data.elements import as_tables, or_else
from pcbatch.data.mappings import keys as lane_keys
from pcbatch.data.mappings.counts import Counts, part_of
from pcbatch.data.mappings.hash_table import KeyPlace
from pcbatch.data.mappings.lane_set import DictView, LaneSet
from pcbatch.data.mappings.ordered_keys import keeping_order
from pcbatch.data.mappings.stamps import LAST
from pcbatch.data.optional import Optional
from pcbatch.data.origins import Tracer, number
from pcbatch.data.rows import element_at
from pcbatch.data.sequences import list_order
from pcbatch.data.sequences.lane_deque import LaneDeque
from pcbatch.data.sequences.lane_list import LaneList, as_list
from pcbatch.data.stored import lists_in
from pcbatch.data.values import Index, Value
from pcbatch.diagnostics.lane_words import type_name
from pcbatch.errors import Refusal

_NOTHING: Any = object()


@dataclass(frozen=True, slots=True)
class Missing:
    """The value of keys that a dict lacks.

    Attributes:
        name: the name of the class in Python: "Counter", "defaultdict" or, for `ORDERED`, "OrderedDict".
        kind: the type of the value, for 0, 0.0 and False are equal.
        value: a number or text; for a list or tuple, its elements, each with its type; for an empty container, None, or
            what becomes of keys that it lacks.
        stored: whether the key is stored when it is read.
    """

    name: str
    kind: type
    value: Value
    stored: bool

    def make(self) -> Value:
        """Return the value, a new one for every key."""
        if self.value is None or isinstance(self.value, Missing):
            return LaneDict(self.value) if isinstance(self.value, Missing) else EMPTY[self.kind]()
        return _thawed((self.kind, self.value))


EMPTY: dict[type, Callable[[], Any]] = {
    list: list, dict: dict, set: set, tuple: tuple, str: str, deque: LaneDeque.of
}  # fmt: skip

COUNTER = Missing("Counter", int, 0, stored=False)
STORE = "store the first value yourself: `if k not in d: d[k] = ...`"
ORDERED = Missing("OrderedDict", dict, None, stored=False)
"""The mark of an `OrderedDict`, which has no value for keys that it lacks."""


def missing_of(factory: Callable[[], Value] | None) -> Missing | None:
    """Return what a `defaultdict` with this factory gives for keys that it lacks."""
    if factory is None:
        return None
    if (read := _read_later(factory)) is not None:
        title = f"the default of a `defaultdict` reads `{read}`, which may be another value when a key is missing"
        raise Refusal("PCB304", title, helps=(f"give it the value that it has now: `lambda {read}={read}: ...`", STORE))
    value = factory()
    if isinstance(value, defaultdict | LaneDict | Counter | OrderedDict) and len(value) == 0:
        inner: Missing | None = ORDERED if isinstance(value, OrderedDict) else COUNTER
        inner = missing_of(value.default_factory) if isinstance(value, defaultdict) else inner
        inner = value.missing if isinstance(value, LaneDict) else inner
        return Missing("defaultdict", dict, inner, stored=True)
    kind = set if isinstance(value, LaneSet) else deque if isinstance(value, LaneDeque) else type(value)
    if kind in EMPTY and not len(value) and getattr(value, "maxlen", None) is None:
        return Missing("defaultdict", kind, None, stored=True)
    if (frozen := _frozen(value)) is not None:
        return Missing("defaultdict", *frozen, stored=True)
    title = f"a `defaultdict` of the lane has constants or empty containers as defaults, not {type_name(value)}"
    raise Refusal("PCB304", title, helps=(STORE,))


def _read_later(factory: Callable[[], Value]) -> str | None:
    """Return a variable of another function that a factory reads each time that it is called; None if there is none."""
    names = getattr(getattr(factory, "__code__", None), "co_freevars", ())
    for name, cell in zip(names, getattr(factory, "__closure__", None) or (), strict=False):
        value: Value = cell.cell_contents
        if not isinstance(value, ModuleType) and (not isinstance(value, FunctionType) or _read_later(value)):
            return str(name)
    return None


def _frozen(value: Value) -> tuple[type, Value] | None:
    """Return the type of a constant, and its value, or its elements with theirs; None for what is none."""
    if type(value) in (bool, int, float, complex, str):
        return type(value), value
    if type(value) not in (list, tuple):
        return None
    parts = tuple(_frozen(part) for part in value)
    return None if None in parts else (type(value), parts)


def _thawed(frozen: tuple[type, Value]) -> Value:
    """Return a constant of this type, made anew of what `_frozen` gives."""
    kind, value = frozen
    return kind(map(_thawed, value)) if kind in (list, tuple) else value


@for_kind(dict)
@jax.tree_util.register_pytree_node_class
class LaneDict(Counts):
    """A dict of the lane; with `missing` a `Counter`, a `defaultdict` or an `OrderedDict`."""

    @classmethod
    @making()
    def known(cls, items: Mapping[Any, Any], missing: Missing | None = None) -> LaneDict:
        """Return the dict with the entries of a Python dict."""
        if len(items) <= FEW or not all(type(value) in (bool, int, float) for value in items.values()):
            return cls.of_items(items.items(), missing)
        new = cls(missing)
        new._store_list(LaneList.from_list(list(items)), LaneList.from_list(list(items.values())))
        return new

    @classmethod
    @making()
    def of_items(cls, pairs: Iterable[tuple[Value, Value]], missing: Missing | None = None) -> LaneDict:
        """Return the dict with these entries, whose keys may be values of the lane."""
        new = cls(missing)
        entries = list(pairs)
        for (key, _), value in zip(entries, as_tables([value for _, value in entries]), strict=True):
            new.store(key, value)
        return new

    # One key.

    def _value_at(self, place: KeyPlace) -> Value:
        assert self.table is not None
        return element_at(_Bucket(self, place.bucket), place.column)  # type: ignore[arg-type]

    def _taken(self, place: KeyPlace) -> Value:
        """The value at a place, no view: the place may be stored into afterwards."""
        return keeping_order(lambda leaf: leaf, self._value_at(place))

    def __getitem__(self, key: Value) -> Value:
        key = lane_keys.hashable(key)
        if self.missing not in (None, ORDERED):
            if not self.missing.stored:
                return self.get(key, self.missing.make())
            return self._or_stored(key, self.missing.make(), known_elsewhere=False)
        return self.present_value(key)

    def present_value(self, key: Value) -> Value:
        """Return the value of a key; one that is missing raises, also where the dict has a default."""
        key = lane_keys.hashable(key)
        if self.table is None:
            raise KeyError(key)
        place = self._find(key)
        require(place.present, "KeyError", *lane_keys.shown(key), argument=lambda: key)
        return self._value_at(place)

    def __setitem__(self, key: Value, value: Value) -> None:
        self.store(key, value)

    def __delitem__(self, key: Value) -> None:
        gone = self.drop(key)
        if not self.is_counter:
            require(gone, "KeyError", *lane_keys.shown(key), argument=lambda: key)

    def _or_stored(self, key: Value, default: Value, known_elsewhere: bool = True) -> Value:
        """The value of a key, which is stored with a default first if it is missing."""
        key = lane_keys.hashable(key)
        default = self._fit(key, default)
        assert self.table is not None
        self.store(key, default, jnp.logical_not(self._find(key).present), known_elsewhere)
        return self._value_at(self._find(key))

    def get(self, key: Value, default: Value = None) -> Value:
        """Return the value of a key, or a default."""
        if isinstance(key, Optional):
            return or_else(key.present, self.get(key.value, default), default)
        key = lane_keys.hashable(key)
        if self.table is None:
            return default
        place = self._find(key)
        value = one_of(self._taken(place), [self._value_at(place)])
        return note_value(self, or_else(place.present, value, default))

    def ordered_value(self, key: Value) -> Value:
        """Return the value of a key that is to be compared, which None cannot be."""
        value = self.get(key)
        if not isinstance(value, Optional):
            return value
        require(value.present, "TypeError", "'<' not supported between instances of 'NoneType' and 'int'")
        return value.value

    @Facts(changes=True, only_stores=True)
    def setdefault(self, key: Value, default: Value = None) -> Value:
        """Return the value of a key, which is stored with a default first if it is missing."""
        return self._or_stored(key, default)

    @Facts(changes=True, removes=True, only_drops=True)
    def pop(self, key: Value, default: Value = _NOTHING) -> Value:
        """Remove a key and return its value, or a default."""
        key = lane_keys.hashable(key)
        if self.table is None:
            if default is _NOTHING:
                raise KeyError(key)
            return default
        place = self._find(key)
        value = self._taken(place)
        self.table = self.table.remove(place)
        if default is not _NOTHING:
            return or_else(place.present, value, default)
        require(place.present, "KeyError", *lane_keys.shown(key), argument=lambda: key)
        return value

    @Facts(changes=True)
    def move_to_end(self, key: Value, last: bool = True) -> None:
        """Move the entry of a key behind all others of an `OrderedDict`, or before them."""
        if isinstance(last, Tracer):
            first = self.copy()
            first.move_to_end(key, False)
            self.move_to_end(key)
            self.table = jax.tree.map(partial(jnp.where, jnp.asarray(last, bool)), self.table, first.table)
            return
        here, value, rest = self.contains(key), self.pop(key), LaneDict.of_items([])
        if not last:
            rest.update(self)
            self.clear()
        self.store(key, value, here)
        self.update(rest)

    @Facts(changes=True, removes=True, only_drops=True)
    def popitem(self, last: bool = True) -> Value:
        """Remove the entry that was stored last, of an `OrderedDict` the first one if asked, and return it."""
        if self.missing != ORDERED and (isinstance(last, Tracer) or not last):
            raise TypeError("dict.popitem() takes no keyword arguments")
        if self.table is None:
            raise KeyError("popitem(): dictionary is empty")
        stamps = self.table.stamps
        require(self.table.count > 0, "KeyError", "popitem(): dictionary is empty")
        ends = jnp.argmin(jnp.where(self.table.live, stamps, LAST)), jnp.argmax(stamps)
        end = jnp.where(last, ends[1], ends[0]) if isinstance(last, Tracer) else ends[bool(last)]
        bucket, column = jnp.divmod(end.astype(jnp.int32), stamps.shape[1])
        place = KeyPlace(bucket, column, self.table.count > 0, jnp.bool_(False), stamps[bucket, column])
        key = self._noted_key(jax.tree.map(lambda leaf: leaf[bucket, column], self.table.keys))
        value = self._taken(place)
        self.table = self.table.remove(place)
        return key, value

    # All entries.

    def values_list(self) -> LaneList:
        """Return the values in the order of insertion."""
        values = self._columns(None if self.table is None else self.table.values, self.value_origins)
        values.hold(self.inner_objects())
        return values

    def inner_objects(self) -> tuple[Value, ...]:
        """Return the mutable objects that are values, and a view of one that was a value before."""
        if self.table is None or not lists_in(self.table.values):
            return self.held
        return (*self.held, element_at(_Bucket(self, 0), 0))  # type: ignore[arg-type]

    @Facts(views=True)
    def keys(self) -> DictView:
        """Return the view of the keys."""
        return DictView(self, "keys")

    @Facts(views=True)
    def values(self) -> DictView:
        """Return the view of the values."""
        return DictView(self, "values")

    @Facts(views=True)
    def items(self) -> DictView:
        """Return the view of the pairs of keys and values."""
        return DictView(self, "items")

    @Facts(changes=True, ambiguous=True, only_stores=True, iterates=True, stepwise=True)
    def update(self, other: Value = (), /, **named: Value) -> None:
        """Store the entries of a dict, or of a list of pairs; a `Counter` adds counts, or the number of elements."""
        if named:
            title = "a dict of the lane has no names as keys"
            raise Refusal("PCB304", title, helps=("use numbers as keys, or a dict of names alone",))
        self._update(other, 1)

    @Facts(changes=True, iterates=True, stepwise=True)
    def subtract(self, other: Value = (), /) -> None:
        """Subtract the counts of a `Counter`, or the numbers of elements."""
        self._update(other, -1)

    def _update(self, other: Value, sign: int) -> None:
        if isinstance(other, dict):
            other = LaneDict.known(other)
        if self.is_counter:
            pairs = other.items_list() if isinstance(other, LaneDict) else None
            keys = as_list(other) if pairs is None else part_of(pairs, 0)
            counts = None if pairs is None else part_of(pairs, 1)
            self.count_all(keys, counts, jnp.add if sign > 0 else jnp.subtract)
            return
        pairs = other.items_list() if isinstance(other, LaneDict) else as_list(other)
        if isinstance(pairs.length, int) and pairs.length == 0:
            return
        if not isinstance(pairs.columns, tuple) or len(pairs.columns) != 2:
            raise Refusal("PCB304", "a dict of the lane is made of pairs `(key, value)`")
        self._store_list(part_of(pairs, 0), part_of(pairs, 1))

    # Operators.

    def __or__(self, other: Value) -> Value:
        if not isinstance(other, dict | LaneDict):
            return NotImplemented
        if self.is_counter:
            return self.combined(other, "|")
        new = self.copy()
        new.update(other)
        return new

    def __ror__(self, other: Value) -> Value:
        if not isinstance(other, dict):
            return NotImplemented
        return LaneDict.known(other, self.missing) | self

    def __ior__(self, other: Value) -> Self:
        if self.is_counter:
            self.combine(other, "|")
        else:
            self.update(other)
        return self

    def __eq__(self, other: Value) -> Value:
        if isinstance(other, dict):
            other = LaneDict.known(other, COUNTER if isinstance(other, Counter) else None)
        if not isinstance(other, LaneDict):
            return False
        if self.is_counter and other.is_counter:
            return self.counts_as(other) & other.counts_as(self)
        if self.table is None or other.table is None:
            return self.count == other.count
        table = other.table
        if self.missing == other.missing == ORDERED:
            return self.items_list() == other.items_list()

        def differs(key: Value, value: Value) -> Value:
            place = table.find(key)
            found = jax.tree.map(lambda leaf: leaf[place.bucket, place.column], table.values)
            return ~(place.present & jnp.asarray(list_order.equal(value, found), bool))

        return number((self.table.count == table.count) & ~jnp.any(self.table.entries_that(differs)))

    def __ne__(self, other: Value) -> Value:
        return list_order.not_(self == other)


class _Bucket(Container):
    """A bucket of the values of a dict, as a list whose elements are read or viewed."""

    def __init__(self, source: LaneDict, bucket: Index) -> None:
        assert source.table is not None
        self.parent, self.node, self.place = source, self, (*source.place, bucket)
        self._columns, self.origins = source.node._table.values, source.value_origins


FEW = 8  # entries of a known dict that are stored one by one
