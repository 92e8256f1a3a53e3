"""Objects of the user's as keys of dicts and sets of the lane.

    @dataclass(frozen=True)
    class Point: x: int; y: int        # told apart by `x` and `y`, as its `__eq__` and `__hash__` say

    class Node: ...                    # without `__eq__`: told apart by identity, the number of its record

Which fields tell objects apart is found by asking both methods about stand-ins for fields: `__eq__` has to be true
where all the fields that it compares are equal, and nowhere else, and `__hash__` to read none but these.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import lru_cache
from inspect import getattr_static
from itertools import combinations
from types import CodeType, FunctionType, MappingProxyType
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp

from pcbatch.data.joinable import Joinable
from pcbatch.data.object_parts import fields_in_repr, is_frozen, is_plain_object, is_users, register_class
from pcbatch.data.pytree_node import pytree_node
from pcbatch.data.stored import by_identity
from pcbatch.data.values import Value

Kinds = Mapping[str, Any]
NO_KINDS: Kinds = MappingProxyType({})
MOST = 8  # fields that an `__eq__` may compare: all of their subsets are tried
BY_FIELDS = "let `__eq__` compare fields by `==` and `and` alone, and `__hash__` be `hash((self.a, self.b))` of these"


class Telling(NamedTuple):
    """How objects of a class are told apart.

    Attributes:
        names: the fields that `__eq__` compares.
        hashed: the fields of whose tuple `__hash__` gives the hash; None if it gives another one.
    """

    names: tuple[str, ...]
    hashed: tuple[str, ...] | None


@pytree_node("record", "told")
class KeyRecord:
    """A reference to a record that is a key, with what tells it apart, as it was when the key was stored.

    Attributes:
        record: the reference.
        told: whether it is no None, and the fields that its class is told apart by.
    """

    __slots__ = ("record", "told")

    def __init__(self, record: Value, told: Value) -> None:
        self.record, self.told = record, told


def is_object(key: Value) -> bool:
    """Return whether a key, or a column of keys, is an object of the user's, or a reference to one."""
    if isinstance(key, Joinable):
        return bool(key.types) and all(map(_is_plain_class, key.types))
    return is_plain_object(key)


def _is_plain_class(cls: type) -> bool:
    return is_users(cls.__module__) and not issubclass(cls, tuple) and not hasattr(cls, "pcbatch_told")


def classes_of(key: Value) -> tuple[Any, ...]:
    """Return the classes that an object, or a reference, may be of."""
    return key.types if isinstance(key, Joinable) else (type(key),)


def told_of(key: Value) -> Telling | None:
    """Return how an object, or those in a column, are told apart; None where that is not known."""
    return telling(classes_of(key)[0])


def compares_identity(cls: Any) -> bool:
    """Return whether objects of a class are equal if they are one object."""
    return bool(cls.__eq__ is object.__eq__)


def fields_told(value: Value, names: tuple[str, ...]) -> tuple[Value, ...]:
    """Return the fields of an object that tell it apart."""
    return tuple(getattr(value, name) for name in names)


def names_shown(key: Value) -> tuple[str, ...] | None:
    """Return the fields that `repr` shows of a named tuple or an object; None of others."""
    return fields_in_repr(type(key)) if hasattr(key, "_fields") or is_plain_object(key) else None


def require_values(key: Value) -> None:
    """Let an object that may be changed, or that is told apart by its identity, be a record of the lane."""
    cls: Any = type(key)
    if not compares_identity(cls) and is_frozen(cls):
        if jax.tree_util.all_leaves([key]):
            register_class(cls)
    else:
        title = f"an object of {cls.__name__} is a key of a dict or set of the lane"
        raise by_identity("PCB304", title, "use a tuple of its fields as the key", key)


def where_present(record: Value, told: Value) -> KeyRecord:
    """Return a key for a reference that may be None, with the fields that tell it apart where it is not."""
    present = record.identity >= 0

    def blanked(leaf: Value) -> Value:
        leaf = jnp.asarray(leaf)
        return jnp.where(present, leaf, jnp.zeros_like(leaf))

    return KeyRecord(record, (present, jax.tree.map(blanked, told)))


def as_objects(keys: Value) -> Value:
    """Return keys, or columns of keys, with references in place of those that have what tells them apart."""

    def reference(part: Value) -> Value:
        return part.record if isinstance(part, KeyRecord) else part

    return jax.tree.map(reference, keys, is_leaf=lambda part: isinstance(part, KeyRecord))


class _UnclearError(Exception):
    """A method does something else with fields than to compare or hash them."""


class _Noting:
    """A stand-in for a field, which notes that it is compared or hashed."""

    name: str
    number: int
    asked: list[str]
    unequal: tuple[str, ...]

    def __eq__(self, other: object) -> bool:
        if other is None:
            return False
        if not isinstance(other, _Noting) or other.name != self.name:
            raise _UnclearError
        self.asked.append(self.name)
        return self.name not in self.unequal

    def __ne__(self, other: object) -> bool:
        return not self == other

    def __hash__(self) -> int:
        self.asked.append(self.name)
        return self.number


class _Field(_Noting):
    def __bool__(self) -> bool:
        raise _UnclearError


KINDS: tuple[Any, ...] = (_Field, *(type("_Field", (_Noting, kind), {}) for kind in (int, float, str, tuple, list)))
"""Stand-ins that are numbers and the like, as a method may do otherwise with some of them."""


@lru_cache(maxsize=1024)
def telling(cls: Any) -> Telling | None:
    """Return how objects of a class with an `__eq__` are told apart; None where that is not known."""
    try:
        compared = _compared(cls, ())[1]
        if len(compared) > MOST or not _is_conjunction(cls, compared):
            return None
        asked: list[str] = []
        made = _stand_in(cls, asked, ())
        found = hash(made)
        if hash(_stand_in(cls, [], ())) != found:
            return None
    except Exception:  # the user's own code, which may raise anything about stand-ins
        return None
    read = tuple(dict.fromkeys(asked))
    if not set(read) <= set(compared):
        return None
    return Telling(compared, read if found == hash(fields_told(made, read)) else None)


def _is_conjunction(cls: Any, compared: tuple[str, ...]) -> bool:
    """Whether two objects are equal where none of these fields differs, and nowhere else, whatever kinds the fields are
    of, also of two, and whether they are None."""
    for kind in KINDS:
        if not all(_compared(cls, some, kind=kind)[0] is (not some) for some in _subsets(compared)):
            return False
    for name in _names(cls):
        mixed, absent = _compared(cls, (), {name: KINDS[1]})[0], _compared(cls, (), {name: None})[0]
        if mixed is not True or absent is not (name not in compared):
            return False
        for other in compared:
            if other != name and _compared(cls, (other,), {name: None}, None, {name: None})[0] is not False:
                return False
    return True


def _compared(
    cls: Any, unequal: tuple[str, ...], one: Kinds = NO_KINDS, kind: Any = None, other: Kinds = NO_KINDS
) -> tuple[object, tuple[str, ...]]:
    """What `__eq__` says of two objects that differ in some fields, and the fields that it has compared; fields of the
    first and of the other object may be of a kind of their own, and are of `kind` otherwise."""
    asked: list[str] = []
    found = _stand_in(cls, asked, unequal, one, kind) == _stand_in(cls, asked, unequal, other, kind)
    return found, tuple(dict.fromkeys(asked))


def _subsets(names: tuple[str, ...]) -> Iterator[tuple[str, ...]]:
    for size in range(len(names) + 1):
        yield from combinations(names, size)


def _stand_in(cls: Any, asked: list[str], unequal: tuple[str, ...], kinds: Kinds = NO_KINDS, kind: Any = None) -> Any:
    """An object of a class, each of whose fields that its methods may read is a stand-in."""
    made = object.__new__(cls)
    for number, name in enumerate(_names(cls)):
        if not isinstance(getattr_static(cls, name, None), FunctionType | property | classmethod | staticmethod):
            try:
                object.__setattr__(made, name, _field(kinds.get(name, kind or _Field), name, number, asked, unequal))
            except AttributeError:
                continue  # a class with `__slots__` has no such field
    return made


def _field(kind: Any, name: str, number: int, asked: list[str], unequal: tuple[str, ...]) -> Any:
    if kind is None:
        return None
    made = kind()
    made.name, made.number, made.asked, made.unequal = name, 7919 * (number + 1), asked, unequal
    return made


@lru_cache(maxsize=1024)
def _names(cls: type) -> tuple[str, ...]:
    """The names that code of a class mentions, in order, but for Python's own."""
    functions = [
        one
        for base in cls.__mro__
        for part in vars(base).values()
        for one in (part.fget if isinstance(part, property) else part,)
        if isinstance(one, FunctionType)
    ]
    found = {name for one in functions for name in _names_in(one.__code__)}
    return tuple(sorted(name for name in found if not name.startswith("__")))


def _names_in(code: CodeType) -> Iterator[str]:
    yield from code.co_names
    for inner in code.co_consts:
        if isinstance(inner, CodeType):
            yield from _names_in(inner)
