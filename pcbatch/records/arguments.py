"""Packed objects among the arguments and the results of a call.

An argument that is a `Packed` enters a program as the numbers of its roots, one for each lane. Its tables are shared,
and are a parameter of their own; several arguments made of one `Packed` share them.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from typing import Any

import jax

from pcbatch.containers.host_forms import replaced
from pcbatch.records.packed import Packed
from pcbatch.records.reference import MADE_TABLE, Ref, RefType
from pcbatch.records.schema import Pointer
from pcbatch.records.tables import Table


def _is_packed(value: Any) -> bool:
    return isinstance(value, Packed)


def with_references(value: Any, tables: list[Table]) -> Any:
    """Return an argument with references in place of packed objects, whose tables are added to `tables`."""
    if not Packed.made or isinstance(value, jax.Array):
        return value
    if not any(map(_is_packed, jax.tree.leaves(value, is_leaf=_is_packed))):
        return value

    def reference(part: Packed) -> Ref:
        roots = part.roots
        return Ref(part.ids, RefType(_table(part, tables), part.schema, roots.classes, roots.optional))

    return replaced(value, _is_packed, reference)


def _table(packed: Packed, tables: list[Table]) -> int:
    """The number of the table of packed objects among those of the call."""
    for k, table in enumerate(tables):
        if table.schema == packed.schema and all(a is b for a, b in zip(table.columns, packed.columns, strict=True)):
            return k
    tables.append(Table(packed.columns, packed.schema, packed.objects))
    return len(tables) - 1


def with_packed(value: Any, tables: Sequence[Table]) -> Any:
    """Return a result with packed objects in place of references."""

    def is_reference(part: object) -> bool:
        return isinstance(part, Ref) and part.pcbatch_type.table != MADE_TABLE

    def packed(part: Ref) -> Packed:
        table = tables[part.pcbatch_type.table]
        type_ = part.pcbatch_type
        return Packed(part.pcbatch_id, table.columns, type_.schema, Pointer(type_.classes, type_.optional))

    return replaced(value, is_reference, packed)


def packed_in(value: Any) -> frozenset[int]:
    """Return the tables of packed objects that references in a value lead into."""
    parts = jax.tree.leaves(value, is_leaf=lambda part: isinstance(part, Ref))
    return frozenset(part.pcbatch_type.table for part in parts if isinstance(part, Ref)) - {MADE_TABLE}


@lru_cache(maxsize=4096)
def mentions(tree: Any) -> bool:
    """Return whether a structure has a node that leads into tables."""
    from pcbatch.records.decode import RecordList

    node = tree.node_data()
    if node is not None and node[0] in (Ref, RecordList):
        return True
    return any(mentions(child) for child in tree.children())


@lru_cache(maxsize=4096)
def erased(tree: Any) -> Any:
    """Return a structure without what references may lead to: those that differ in nothing else are stored alike."""
    if not mentions(tree):
        return tree
    nodes = jax.tree.unflatten(tree, range(tree.num_leaves))
    plain = jax.tree.map(
        lambda n: (n.pcbatch_id,) if isinstance(n, Ref) else n, nodes, is_leaf=lambda n: isinstance(n, Ref)
    )
    return jax.tree.structure(plain)
