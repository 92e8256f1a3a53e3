"""The classes of tuples that are records of a lane, as those of trees of tuples are.

    ("num", 3)             a record of the class of ("num", ·), whose field `item_1` is 3
    (op, left, right)      a record of the class of tuples of 3, with the fields `item_0` to `item_2`

There is one class for each length, and for each text that stands first in the display as a literal: it is a constant of
the class, so that `node[0] == "num"` is known where the class is. `isinstance` and `type` take them for tuples, and
results have plain tuples in their place.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import fields, make_dataclass
from functools import cache
from typing import Any, ClassVar

from pcbatch.data.values import Value
from pcbatch.decisions import Cure
from pcbatch.errors import Refusal

MODULE = "tuples"
"""The module that the classes are said to be of."""


class TupleValue:
    """The base of the classes of tuples.

    Attributes:
        pcbatch_items: the names of the elements, which are fields, or a constant of the class.
    """

    pcbatch_items: ClassVar[tuple[str, ...]] = ()


class AtomValue:
    """The base of the classes of texts and numbers that stand where tuples do, each in the field `value`.

    Attributes:
        pcbatch_kind: the class of Python.
    """

    pcbatch_kind: ClassVar[type] = object


class NeedsClasses(Refusal):
    """A record is read in a way that its class tells, and may be of several: what follows is built for each of them."""

    def __init__(self, what: str) -> None:
        title = f"{what} hangs on which tuple or which other value of the lane this is"
        helps = ("give the tuple a name first, and ask for its parts then: `node = nodes[k]`",)
        super().__init__("PCB320", title, helps=helps, cures=Cure.ALONG | Cure.LOOP)


def tuple_class(length: int, tag: str | None) -> type[TupleValue]:
    """Return a class of the tuples of a length, whose first element is the text `tag` unless that is None."""
    items = tuple(f"item_{k}" for k in range(length))
    own = items if tag is None else items[1:]
    namespace = {"pcbatch_items": items, **({} if tag is None else {items[0]: tag})}
    cls = make_dataclass("tuple", own, bases=(TupleValue,), namespace=namespace, frozen=True, order=True)
    cls.__module__, cls.__qualname__ = MODULE, f"tuple of {length}{'' if tag is None else f' {tag!r}'}"
    return cls


@cache
def atom_class(kind: type) -> type[AtomValue]:
    """Return the class of texts, or of the numbers of a class of Python, that stand where tuples do."""
    namespace = {"pcbatch_kind": kind}
    cls = make_dataclass(kind.__name__, ("value",), bases=(AtomValue,), namespace=namespace, frozen=True, order=True)
    cls.__module__, cls.__qualname__ = MODULE, f"{kind.__name__} beside tuples"
    return cls


def name_of_class(cls: type) -> str:
    """Return the name of a class of tuples in a function, which no code can have."""
    return f"class {cls.__qualname__}"


def items_of(cls: type) -> tuple[str, ...] | None:
    """Return the names of the elements of a class of tuples; None for other classes."""
    if issubclass(cls, TupleValue):
        return cls.pcbatch_items
    return tuple(cls._fields) if issubclass(cls, tuple) and hasattr(cls, "_fields") else None


def may_equal_others(cls: type, others: Sequence[type]) -> bool:
    """Return whether a tuple or a number of a class may equal one of another class: a float an int, a tuple with any
    first element one with a text there."""
    if issubclass(cls, AtomValue) and cls.pcbatch_kind is not str:
        return any(issubclass(one, AtomValue) and one is not cls and one.pcbatch_kind is not str for one in others)
    items, fields = items_of(cls), len(vars(cls)["__dataclass_fields__"]) if issubclass(cls, TupleValue) else 0
    same = [one for one in others if issubclass(one, TupleValue) and one is not cls and items_of(one) == items]
    return any(fields != len(vars(one)["__dataclass_fields__"]) for one in same)


def python_class(cls: type) -> type:
    """Return the class that objects of a class have in Python."""
    if issubclass(cls, AtomValue):
        return cls.pcbatch_kind
    return tuple if issubclass(cls, TupleValue) else cls


def is_plain(cls: type) -> bool:
    """Return whether records of a class stand for what Python cannot change: a tuple, a text or a number."""
    return issubclass(cls, AtomValue) or items_of(cls) is not None


def plain_value(cls: Any, values: Sequence[Value]) -> Value:
    """Return what a record of such a class stands for, with these values of its fields."""
    if issubclass(cls, AtomValue):
        return values[0]
    if not issubclass(cls, TupleValue):
        made: tuple[Value, ...] = tuple.__new__(cls, values)
        return made
    given = dict(zip((one.name for one in fields(cls)), values, strict=True))
    return tuple(given[name] if name in given else getattr(cls, name) for name in cls.pcbatch_items)
