"""The storage of dicts and sets of the lane: a hash table, or a view of one that lies in another container."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any, ClassVar, Self

import jax
import jax.numpy as jnp
import numpy as np

from pcbatch.data.columns import Shape, element_text, leaf_at, put
from pcbatch.data.container import lane_value
from pcbatch.data.elements import join_origins, unify
from pcbatch.data.mappings import keys as lane_keys
from pcbatch.data.mappings.hash_table import HashTable, KeyPlace
from pcbatch.data.mappings.key_objects import as_objects
from pcbatch.data.origins import Origin
from pcbatch.data.stored import Stored, UnlikeError, lists_in
from pcbatch.data.values import Column, Index, Value
from pcbatch.diagnostics.lane_words import type_name
from pcbatch.errors import Refusal
from pcbatch.jax_settings import trace_state

Origins = tuple[Origin, ...]
MIXED, REMOVED, ADDED = range(3)


class StoredTable(Stored):
    """The table of a dict or set of the lane, which may be one of those in the columns of another container.

    Attributes:
        none: 0, the number of entries while there is no table.
        missing: for a dict, what becomes of keys that it lacks (see `Missing`); static data.
    """

    python_name: ClassVar[str] = "dict"
    __hash__ = None  # type: ignore[assignment]

    def __init__(self, missing: Value = None) -> None:
        self._node: StoredTable = self
        self.place: tuple[Any, ...] = ()
        self.missing = missing
        self._table: HashTable | None = None
        self._none: Any = 0
        self._origins: tuple[Origins, Origins] = (), ()
        self._history = ADDED
        self._found: tuple[list[Any], HashTable, KeyPlace] | None = None
        self._seen: tuple[HashTable, HashTable, Any] | None = None

    # An element of a container is a view, whose table is a part of the tables that lie in its columns.

    def view(self, place: tuple[Index, ...], parent: Value) -> Value:
        """Return the dict or set at indices of the containers around this one; it is changed in place."""
        new = object.__new__(type(self))
        StoredTable.__init__(new, self.missing)
        new._node, new.place, new.parent = self, place, parent
        return new

    @property
    def lead(self) -> Shape:
        """The axes of the containers around a view."""
        return () if self.node is self else self.node.around

    @property
    def around(self) -> Shape:
        """The axes in front of all leaves, where these lie in the columns of other containers."""
        return tuple(jnp.shape(self._none if self._table is None else self._table.count))

    @property
    def table(self) -> HashTable | None:
        """The hash table; None while nothing has been stored, so that the types of keys and values are not known."""
        node = self.node
        if node is self or node._table is None:
            return node._table  # type: ignore[no-any-return]
        here = trace_state()  # a search of rows traces for itself
        seen = self._seen
        if seen is None or seen[0] is not node._table or seen[2] != here or lists_in(node._table.values):
            seen = self._seen = node._table, node._table.at(self.place), here
        return seen[1]

    @table.setter
    def table(self, table: Value) -> None:
        node = self.node
        if node is self:
            self._table = table
            return
        window = None if table is None else table.window
        if window is not None and window.before is node._table and window.place is self.place:
            node._table = window.tables
            self._seen = node._table, replace(table, window=replace(window, before=node._table)), trace_state()
            return
        whole, mine = node.unified(self.lead, self.with_table(table), ())
        node._table = jax.tree.map(lambda leaf, new: put(leaf, self.place, new), whole._table, mine._table)

    @property
    def none(self) -> Value:
        """0, the number of entries while there is no table; None where there is one."""
        none = self.node._none
        return none if self.node is self or none is None else leaf_at(jnp.asarray(none), self.place)

    @property
    def key_origins(self) -> Origins:
        """By leaf of a key, whether it is a number of Python."""
        return self._node._origins[0]

    @key_origins.setter
    def key_origins(self, origins: Origins) -> None:
        self._node._origins = origins, self.value_origins

    @property
    def value_origins(self) -> Origins:
        """By leaf of a value, whether it is a number of Python."""
        return self._node._origins[1]

    @value_origins.setter
    def value_origins(self, origins: Origins) -> None:
        self._node._origins = self.key_origins, origins

    @property
    def history(self) -> int:
        """The way the entries came: ADDED one by one, then some REMOVED, or MIXED. A set's order needs it; static."""
        return self._node._history

    @history.setter
    def history(self, history: int) -> None:
        self._node._history = history if self._node is self else min(history, self._node._history)

    def unified(self, lead: Shape, other: Value, other_lead: Shape) -> tuple[Value, Value]:
        """Return this dict or set, and another one, as ones of the type that covers both.

        Raises:
            Refusal: if there is no such type.
        """
        if isinstance(other, StoredTable) and type(self) is not type(other):
            title = f"a {self.python_name} on one way and a {other.python_name} on another"
            raise Refusal("PCB304", title, helps=("make them one kind of container",))
        if not isinstance(other, StoredTable):
            raise UnlikeError(self, other)
        if self.missing != other.missing:
            names = ["a dict" if one.missing is None else f"a `{one.missing.name}`" for one in (self, other)]
            raise Refusal("PCB304", f"{names[0]} on one way and {names[1]} on another")
        a, b = self.table, other.table
        origins, history = (self.key_origins, self.value_origins), min(self.history, other.history)
        if a is None or b is None:
            origins = (other if a is None else self)._node._origins
            if a is not b:
                a, b = b.blanked(other_lead, lead) if a is None else a, a.blanked(lead, other_lead) if b is None else b  # type: ignore[union-attr]
        else:
            if (a.capacity, lane_keys.kinds(a.keys)) != (b.capacity, lane_keys.kinds(b.keys)) and history == REMOVED:
                history = MIXED  # a table that is made again forgets what was removed
            origins = (
                join_origins(as_objects(a.keys), origins[0], as_objects(b.keys), other.key_origins),
                join_origins(a.values, origins[1], b.values, other.value_origins),
            )
            a, b = a.unified(lead, b, other_lead)
        aux = (*origins, self.missing, history)
        return self.tree_unflatten(aux, (a, self.none)), self.tree_unflatten(aux, (b, other.none))

    @property
    def _static(self) -> tuple[Value, ...]:
        return self.key_origins, self.value_origins, self.missing, self.history

    def blanked(self, lead: Shape, new: Shape) -> Self:
        """Return empty dicts or sets of this type with another lead."""
        table = None if self.table is None else self.table.blanked(lead, new)
        return self.tree_unflatten(self._static, (table, jnp.zeros(new, np.int32) if new else 0))

    def tree_flatten(self) -> tuple[tuple[Any, Any], tuple[Any, ...]]:
        """Return the table, and the rest as static data; the dtypes of keys are among it, for hashes depend on them.

        Without a table there is a number in its place, which has an element for each lane in results.
        """
        dtypes = () if self.table is None else tuple(map(_dtype_name, jax.tree.leaves(self.table.keys)))
        return (self.table, self.none if self.table is None else None), (*self._static, dtypes)

    @classmethod
    def tree_unflatten(cls, aux: tuple[Any, ...], children: Sequence[Any]) -> Self:
        """Return the entries of a table, which may be any object."""
        new = object.__new__(cls)
        StoredTable.__init__(new, aux[2])
        table, none = children
        new._table = replace(table, window=None) if isinstance(table, HashTable) else table
        new._none, new._origins, new._history = none, (aux[0], aux[1]), aux[3]
        return new

    def with_table(self, table: Value) -> Self:
        """Return a dict or set of the same type with another table."""
        return self.tree_unflatten(self._static, (table, self.none))

    def __repr__(self) -> str:
        kind = type_name(self)
        if self.table is None:
            return f"empty {kind}"
        keys = f"{kind} of {element_text(self.table.keys, 2)}"
        return keys if self.table.values is None else f"{keys} to {element_text(self.table.values, 2)}"

    def with_keys_of(self, other: Self) -> Self:
        """Return the dict or set with keys of the dtypes of another one of its structure, at the places of these."""
        table, theirs = self.table, other.table
        if table is None or theirs is None:
            return self
        keys = jax.tree.map(lambda leaf, want: leaf.astype(want.dtype), table.keys, theirs.keys)
        if lane_keys.kinds(keys) == lane_keys.kinds(table.keys):
            return self
        return self.with_table(table.rebuilt(keys, table.values, table.capacity, table.count.shape))


def covered(a: Value, b: Value) -> StoredTable:
    """Return a dict or set, or a column of them, as one of the type that covers it and another.

    Raises:
        Refusal: if there is no such type.
    """
    one, other = lane_value(a), lane_value(b)
    made: StoredTable = unify(one, one.around, other, other.around)[0]
    return made


def _dtype_name(leaf: Column) -> str:
    return str(getattr(leaf, "dtype", ""))
