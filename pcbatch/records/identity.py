"""The objects that tables were made of, so that one that two `Packed` hold is found."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any
from weakref import ref

from pcbatch.diagnostics.diagnostic import Diagnostic
from pcbatch.errors import UsageError
from pcbatch.records.tables import Table

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
