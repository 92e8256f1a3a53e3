"""The type of references to records, and what can be asked of a reference without reading the record."""

from __future__ import annotations

import inspect
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import reduce
from types import FunctionType
from typing import TYPE_CHECKING, Any

import jax.numpy as jnp

from pcbatch.data.checks import require
from pcbatch.data.objects.tuples.classes import AtomValue, NeedsClasses
from pcbatch.data.origins import number
from pcbatch.data.values import Value
from pcbatch.errors import Refusal

if TYPE_CHECKING:
    from pcbatch.data.objects.reference import Ref

REFUSED = "a record of packed objects"
MADE_TABLE = -1
"""The number of the table of records that are made in lanes, which are in none."""
TRUTH = ("__bool__", "__len__")  # the methods that Python asks, in this order


@dataclass(frozen=True, slots=True)
class RefType:
    """The static type of a reference.

    Attributes:
        table: the number of the `Packed` that it leads into, among those of a call; `MADE_TABLE` for records that are
            made in lanes, and a `KnownTable` for objects that are known while compiling.
        schema: of that `Packed`, or of the records made in lanes.
        classes: what it may refer to, by their numbers in the schema.
        optional: whether it may be None.
    """

    table: Any
    schema: Value  # a `Schema`, or a `MadeSchema`
    classes: tuple[int, ...]
    optional: bool

    @property
    def types(self) -> tuple[type, ...]:
        """The classes themselves, as objects of Python."""
        return tuple(self.schema.classes[c].cls for c in self.classes)

    def __str__(self) -> str:
        return " | ".join([*(cls.__name__ for cls in self.types), *(["None"] if self.optional else [])])

    def covering(self, other: RefType | None) -> RefType | None:
        """Return the type that covers this one and another one, or None; None if they lead into different tables."""
        if other is None:
            return replace(self, optional=True)
        if (self.table, self.schema) != (other.table, other.schema):
            return None
        classes = tuple(sorted({*self.classes, *other.classes}))
        return replace(self, classes=classes, optional=self.optional or other.optional)


def _own(cls: type) -> set[str]:
    """The names that the classes before `tuple` define."""
    return {name for base in cls.__mro__ if base not in (tuple, object) for name in vars(base)}


def methods_of(cls: type) -> set[str]:
    """Return the names that a class defines itself, and classes that it is made of."""
    return {name for base in cls.__mro__ if base is not object for name in vars(base)}


def refused(title: str, *helps: str) -> Refusal:
    """Return the error about what a record cannot do."""
    return Refusal("PCB320", title, helps=helps)


def is_array(ref: Ref) -> bool:
    """Return whether these are the roots of packed objects that lanes share."""
    return bool(getattr(ref.pcbatch_id, "shape", ()))


def is_none(ref: Ref) -> Value:
    """Return whether a reference is None: bool[], or False where it cannot be."""
    if is_array(ref) or not ref.pcbatch_type.optional:
        return False
    if not ref.pcbatch_type.classes:
        return True  # all that was packed is None
    return number(ref.pcbatch_id < 0)


def same(a: Ref, b: Ref, operator: str = "is") -> Value:
    """Return whether two references are to one object; `operator` is the one that asks, for messages."""
    if a.pcbatch_type.table != b.pcbatch_type.table or a.pcbatch_type.schema != b.pcbatch_type.schema:
        if MADE_TABLE in (a.pcbatch_type.table, b.pcbatch_type.table):
            return False  # one is made in the lane, the other is not
        raise refused(
            f"`{operator}` compares records of two arguments, which were packed apart",
            "pack the objects together, `trees = pcbatch.pack([*a, *b])`, and pass `trees[:n]` and `trees[n:]`",
        )
    both = set(a.pcbatch_type.types) & set(b.pcbatch_type.types)
    if any(operator not in getattr(cls, "pcbatch_told", (operator,)) for cls in both):
        raise refused(
            f"`{operator}` compares functions that lanes do not tell apart as Python does",
            "keep a number or a text beside each function, and compare that",
        )
    return number(a.pcbatch_id == b.pcbatch_id)


def truth(ref: Ref) -> Value:
    """Return the condition that a record stands for: it is true, and None is not."""
    if is_array(ref):
        return len(ref) > 0
    types = ref.pcbatch_type.types
    if any(issubclass(cls, AtomValue) for cls in types):
        raise NeedsClasses("whether it is true")
    own = {c: next((getattr(c, n) for n in TRUTH if hasattr(c, n)), None) for c in types if not issubclass(c, tuple)}
    if named := [cls.__name__ for cls in own if own[cls] is not None]:
        codes = (method.__code__ for method in own.values() if isinstance(method, FunctionType))
        helps = ("write `x is not None`, or read a field",)
        raise Refusal("PCB320", f"{named[0]} says itself whether it is true", helps=helps, functions=codes)
    for cls in types:
        if issubclass(cls, tuple) and (not cls._fields or set(TRUTH) & _own(cls)):  # type: ignore[attr-defined]
            raise refused(f"{cls.__name__} may be false as a tuple", "write `x is not None`, or `isinstance`")
    empty = is_none(ref)
    return not empty if isinstance(empty, bool) else number(jnp.logical_not(empty))


def is_in(ref: Ref, classes: Sequence[int]) -> Value:
    """Return whether a reference leads to one of some classes: bool[], or a bool where that is known."""
    type_ = ref.pcbatch_type
    asked = [c for c in type_.classes if c in classes]
    if not asked:
        return False
    if len(asked) == len(type_.classes):
        return number(ref.pcbatch_id >= 0) if type_.optional else True
    if type_.table == MADE_TABLE:
        return type_.schema.is_in(ref.pcbatch_id, asked)
    first = type_.schema.first
    return number(
        reduce(jnp.logical_or, [(ref.pcbatch_id >= first[c]) & (ref.pcbatch_id < first[c + 1]) for c in asked])
    )


def class_at(type_: RefType, number: int) -> type:
    """Return the class that has a number in the schema of a type."""
    cls: type = type_.schema.classes[number].cls
    return cls


def as_class(ref: Ref, cls: type) -> Ref:
    """Return a reference that is known to lead to a class."""
    type_ = ref.pcbatch_type
    classes = tuple(c for c in type_.classes if issubclass(class_at(type_, c), cls))
    return ref.typed(replace(type_, classes=classes or type_.classes, optional=False))


def require_present(ref: Ref, exception: str, message: str) -> None:
    """Let the lane fail where a record is None."""
    if ref.pcbatch_type.optional:
        require(ref.pcbatch_id >= 0, exception, message)


def static_attribute(ref: Ref, name: str) -> Value:
    """Return what the class of a record has under a name, unbound; None if its classes differ in it."""
    found = [inspect.getattr_static(cls, name, None) for cls in ref.pcbatch_type.types]
    return found[0] if found and all(one is found[0] for one in found) else None
