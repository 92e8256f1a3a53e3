"""Displays of tuples: which tuples they make, and records in place of those."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import AbstractContextManager
from contextvars import ContextVar
from dataclasses import dataclass, field, fields
from typing import Any

import jax

from pcbatch.contexts import setting
from pcbatch.data.objects.made import recorded
from pcbatch.data.objects.made_classes import MadeClass
from pcbatch.data.objects.tuples.classes import TupleValue
from pcbatch.data.values import Value

Structure = tuple[Any, tuple[Any, ...]]  # of a tuple: its tree, and its leaves with types in place of arrays


@dataclass(slots=True)
class Displays:
    """The tuples that displays have made while a function is compiled, by the places of the displays, each with the
    text that stands first as a literal."""

    found: dict[tuple[str, str | None], list[Structure]] = field(default_factory=dict)

    def note(self, place: str, tag: str | None, items: tuple[Value, ...]) -> None:
        """Note a tuple that a display has made."""
        leaves, tree = jax.tree.flatten(items)
        types = tuple(jax.typeof(leaf) if isinstance(leaf, jax.Array) else leaf for leaf in leaves)
        self.found.setdefault((place, tag), []).append((tree, types))

    def __iter__(self) -> Iterator[tuple[str, str | None, Structure]]:
        return ((place, tag, one) for (place, tag), each in self.found.items() for one in each)


_displays: ContextVar[Displays | None] = ContextVar("pcbatch_displays", default=None)


def noting_displays(found: Displays | None) -> AbstractContextManager[None]:
    """Note the tuples that displays make within the context; None has them stay tuples."""
    return setting(_displays, found)


def displays() -> Displays | None:
    """Return what is noted."""
    return _displays.get()


def displayed(place: str, tag: str | None, *items: Value) -> Value:
    """Return the tuple of a display, and note it."""
    found = _displays.get()
    if found is not None:
        found.note(place, tag, items)
    return items


def of_display(cls: type[TupleValue], *items: Value) -> Value:
    """Return the tuple of a display as a record of a class."""
    made: Any = object.__new__(cls)
    for name, item in zip(cls.pcbatch_items, items, strict=True):
        if name not in vars(cls):  # its text is a constant of the class
            object.__setattr__(made, name, item)
    return recorded(made)


def made_class(cls: type[TupleValue]) -> MadeClass:
    """Return the class of a tuple as that of records made in lanes."""
    return MadeClass(cls, tuple(one.name for one in fields(cls)))  # type: ignore[arg-type]
