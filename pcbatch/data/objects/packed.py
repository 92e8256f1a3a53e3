"""`Packed`: objects that refer to one another, as arrays.

As an argument it enters a program as the numbers of its roots, one for each lane. Its tables are shared, and are a
parameter of their own; several arguments made of one `Packed` share them.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from functools import lru_cache
from os import PathLike
from typing import Any
from weakref import ref

import jax

from pcbatch.data.host.host_forms import replaced
from pcbatch.data.objects import files
from pcbatch.data.objects.decode import RecordList
from pcbatch.data.objects.ref_type import MADE_TABLE, RefType
from pcbatch.data.objects.reference import Ref
from pcbatch.data.objects.schema import Pointer, Schema
from pcbatch.data.objects.tables import KnownTable, Table
from pcbatch.data.objects.unpack import unpack
from pcbatch.diagnostics.diagnostic import Diagnostic
from pcbatch.errors import UsageError

Marks = tuple[Any, ...]
"""One mark for each object, the same in all `Packed` that hold it: a weak reference, or the object where it has none.

An object has one weak reference, so that a mark that is kept is never that of a later object in the same memory.
"""


def marks(objects: Iterable[Any]) -> Marks:
    """Return the marks of some objects."""
    return tuple([ref(one) if type(one).__weakrefoffset__ else one for one in objects])


def check_apart(tables: Sequence[Table], changed: frozenset[int]) -> None:
    """Refuse tables of which some are changed where others may hold the same objects, which would not see it."""
    for k in sorted(changed):
        for other in range(len(tables)):
            if other != k and _may_share(tables[k], tables[other]):
                title = "the function changes packed objects that two arguments, which were packed apart, may share"
                together = "pack the objects together, `trees = pcbatch.pack([*a, *b])`"
                help = f"{together}, and pass `trees[:n]` and `trees[n:]`"
                raise UsageError(Diagnostic("PCB320", title, helps=(help,)))


def _may_share(a: Table, b: Table) -> bool:
    if not {record.cls for record in a.schema.classes} & {record.cls for record in b.schema.classes}:
        return False
    if a.objects is None or b.objects is None:
        return True
    return not set(map(id, a.objects)).isdisjoint(map(id, b.objects))


@jax.tree_util.register_pytree_with_keys_class
class Packed:
    """Objects that refer to one another, as arrays. Made by `pcbatch.pack`.

    A `Packed` is a sequence of roots, and holds all records that they lead to: `trees[i]` takes a root, a slice or an
    array of them, and copies no record. To a batched function it is an argument with one object for each lane.

    It is a pytree of JAX: its leaves are the numbers of the roots and the columns of the tables.
    """

    __slots__ = ("columns", "ids", "objects", "roots", "schema")
    made = False  # whether there is one: a call need not look for any before

    def __init__(
        self, ids: Any, columns: tuple[Any, ...], schema: Schema, roots: Pointer, objects: Marks | None = None
    ) -> None:
        Packed.made = True
        self.ids = ids
        self.columns = columns
        self.schema = schema
        self.roots = roots
        self.objects = objects  # what the tables were made of; None where that is not known

    def __len__(self) -> int:
        """Return the number of roots."""
        return len(self.ids)

    def __getitem__(self, index: Any) -> Packed:
        """Return the roots at an index: a number, a slice, or an array of numbers or bools."""
        return Packed(self.ids[index], self.columns, self.schema, self.roots, self.objects)

    def __iter__(self) -> Iterator[Packed]:
        """Go over the roots, each a `Packed` of one object without an axis."""
        return (self[k] for k in range(len(self)))

    @property
    def classes(self) -> tuple[type, ...]:
        """The classes of the records."""
        return tuple(record.cls for record in self.schema.classes)

    def unpack(self) -> Any:
        """Make objects again, equal to those that were packed, with the same sharing.

        Returns:
            A list of the roots; one object for a `Packed` of one object.
        """
        return unpack(self)

    def save(self, path: str | PathLike[str]) -> None:
        """Write the roots and all tables to a file, which `Packed.load` reads.

        Args:
            path: of the file, in NumPy's format `.npz`.
        """
        files.save(self, path)

    @staticmethod
    def load(path: str | PathLike[str], *classes: type) -> Packed:
        """Read the objects that `packed.save(path)` has written to a file.

        Args:
            path: of the file.
            *classes: the classes of the records and of enumerations. Those that are left out are looked for, by their
                names, in the modules that are imported already: nothing is imported.

        Returns:
            A `Packed`.

        Raises:
            UsageError: the file holds no packed objects, or a class of them is not found.
        """
        return Packed(*files.read(path, classes), ())

    def __reduce__(self) -> tuple[Any, ...]:
        return Packed, (self.ids, self.columns, self.schema, self.roots)

    def __repr__(self) -> str:
        tables = ", ".join(f"{record.cls.__name__}: {record.rows} rows" for record in self.schema.classes)
        return f"Packed(roots: {getattr(self.ids, 'shape', self.ids)}; {tables})"

    def tree_flatten_with_keys(self) -> tuple[tuple[tuple[Any, Any], ...], tuple[Schema, Pointer]]:
        """Return the leaves with their names, and what is static: the schema, and what the roots lead to."""
        names = ("ids", *self.schema.columns)
        keys = map(jax.tree_util.GetAttrKey, names)
        return tuple(zip(keys, (self.ids, *self.columns), strict=True)), (self.schema, self.roots)

    def tree_flatten(self) -> tuple[tuple[Any, ...], tuple[Schema, Pointer]]:
        """Return the leaves, and what is static."""
        return (self.ids, *self.columns), (self.schema, self.roots)

    @classmethod
    def tree_unflatten(cls, static: tuple[Schema, Pointer], leaves: Sequence[Any]) -> Packed:
        """Make a `Packed` of its leaves."""
        ids, *columns = leaves
        return cls(ids, tuple(columns), *static)


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
        table = part.pcbatch_type.table
        table = table if isinstance(table, KnownTable) else tables[table]
        type_ = part.pcbatch_type
        return Packed(part.pcbatch_id, table.columns, type_.schema, Pointer(type_.classes, type_.optional))

    return replaced(value, is_reference, packed)


def packed_in(value: Any) -> frozenset[int]:
    """Return the tables of packed objects that references in a value lead into."""
    parts = jax.tree.leaves(value, is_leaf=lambda part: isinstance(part, Ref))
    tables = (part.pcbatch_type.table for part in parts if isinstance(part, Ref))
    return frozenset(table for table in tables if table != MADE_TABLE and not isinstance(table, KnownTable))


@lru_cache(maxsize=4096)
def mentions(tree: Any) -> bool:
    """Return whether a structure has a node that leads into tables."""
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
