"""The classes of the user's whose objects may be records made in lanes."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, is_dataclass, replace
from typing import Any

import jax

from pcbatch.data.container import Container
from pcbatch.data.object_parts import is_frozen
from pcbatch.data.objects.reference import Ref
from pcbatch.data.objects.schema import field_names, is_record


@dataclass(frozen=True, slots=True)
class MadeClass:
    """A class whose objects are records made in lanes, with the names of its fields; in those of `mixed` texts and
    numbers are records, too, as tuples stand there as well."""

    cls: type
    fields: tuple[str, ...]
    mixed: frozenset[str] = frozenset()

    def mixing(self, *fields: str) -> MadeClass:
        """Return this class with texts and numbers in further fields."""
        return replace(self, mixed=self.mixed.union(fields))


def classes_in(value: Any, test: Callable[[Any], bool] = lambda part: True) -> frozenset[MadeClass]:
    """Return the classes of the objects of the user's in a value that may be records made in lanes, and pass a test."""
    found: set[MadeClass] = set()

    def look(part: Any) -> bool:
        if not isinstance(part, Container | type | Ref) and is_user_record(type(part)) and test(part):
            found.add(class_of(part))
        return False

    jax.tree.leaves(value, is_leaf=look)
    return frozenset(found)


def class_of(value: Any) -> MadeClass:
    """Return the class of an object, with its fields in an order that does not depend on the object."""
    names = field_names(type(value), value)
    return MadeClass(type(value), names if declares_fields(type(value)) else tuple(sorted(names)))


def classes_of_objects(values: Iterable[Any]) -> frozenset[MadeClass]:
    """Return the classes of some objects."""
    return frozenset(map(class_of, values))


def declares_fields(cls: type) -> bool:
    """Return whether a class says itself which fields its objects have."""
    return is_dataclass(cls) or issubclass(cls, tuple)


def is_mutable(cls: type) -> bool:
    """Return whether objects of a class can be changed by assignments to their attributes."""
    return not is_frozen(cls) and not issubclass(cls, tuple)


def is_user_record(cls: type) -> bool:
    """Return whether objects of a class may be records made in lanes."""
    return cls.__module__.partition(".")[0] != "pcbatch" and is_record(cls)


def nests(value: Any, around: tuple[type, ...] = ()) -> bool:
    """Whether a value has an object of the user's in one of its own class."""
    if is_user_record(type(value)) and type(value) in around:
        return True
    parts = jax.tree.leaves(value, is_leaf=lambda part: part is not value)
    return any(nests(part, (*around, type(value))) for part in parts if part is not value)
