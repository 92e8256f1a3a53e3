"""The classes of boxes: records of the lane that hold one list, dict or set each, which thereby has an identity.

Where an object of Python's has several names and one of them changes it, all show the change. A container of the lane
is a value; a box is a row of the heap, whose number is the identity.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import make_dataclass
from functools import cache
from typing import Any, ClassVar

MODULE = "boxes"
"""The module that the classes are said to be of."""


class BoxValue:
    """The base of the classes of boxes, each with one field, `value`, or with the fields of a dict by name.

    Attributes:
        pcbatch_place: the kind of what is in the boxes, and where it is made.
        pcbatch_keys: the keys of a dict by name, each of which has a field.
        pcbatch_late: those of them that a dict may lack, whose fields are None then.
    """

    pcbatch_place: ClassVar[tuple[str, str]] = ("", "")
    pcbatch_keys: ClassVar[tuple[str, ...]] = ()
    pcbatch_late: ClassVar[frozenset[str]] = frozenset()


@cache
def box_class(kind: str, place: str, keys: tuple[str, ...] = (), late: frozenset[str] = frozenset()) -> type[BoxValue]:
    """Return the class of the boxes of what is made at a place: a "list", "dict" or "set", or a dict by name, of which
    `keys` are fields, and `late` the keys that may be lacking."""
    namespace = {"pcbatch_place": (kind, place), "pcbatch_keys": keys, "pcbatch_late": late}
    cls = make_dataclass(kind, fields_of(keys), bases=(BoxValue,), namespace=namespace, eq=False)
    cls.__module__, cls.__qualname__ = MODULE, f"{kind} made at {place}{' by name' if keys else ''}"
    return cls


def fields_of(keys: tuple[str, ...]) -> tuple[str, ...]:
    """Return the names of the fields of a box; of a dict by name there is one for each of its keys."""
    return tuple(f"item_{k}" for k in range(len(keys))) or ("value",)


def field_of(keys: tuple[str, ...], key: str) -> str:
    """Return the field of a box that has the value at a key of a dict by name."""
    return fields_of(keys)[keys.index(key)]


def empty_of(value: Any) -> tuple[Any, Callable[[Any], None]]:
    """Return an object of Python's of the kind of a value, without elements yet, and what gives it those."""
    match value:
        case list() | dict() | set():
            made = type(value)()
            return made, made.extend if isinstance(made, list) else made.update
    return value, lambda _: None


def python_value(cls: type[BoxValue], fields: Sequence[Any]) -> Any:
    """Return what a box holds, of the values of its fields."""
    if not cls.pcbatch_keys:
        return fields[0]
    items = dict(zip(cls.pcbatch_keys, fields, strict=True))
    return {key: value for key, value in items.items() if value is not None or key not in cls.pcbatch_late}
