"""The order and the equality that `dataclass` gives to a class: those of tuples of the fields that are compared.

What `dataclass` makes is code without a source. A lane compares tuples of the fields in its place; they are named
tuples, so that objects of two classes never have one structure.
"""

from __future__ import annotations

import dis
import inspect
from collections import namedtuple
from collections.abc import Callable
from contextlib import AbstractContextManager
from contextvars import ContextVar
from dataclasses import fields
from functools import lru_cache
from types import CodeType, FunctionType
from typing import Any

import jax

from pcbatch.contexts import setting
from pcbatch.data.catalogue import facts
from pcbatch.data.joinable import Joinable
from pcbatch.data.object_parts import is_generated, is_plain_object, is_user_code
from pcbatch.data.stored import OfObjects, by_identity
from pcbatch.data.values import Value
from pcbatch.decisions import Cure
from pcbatch.errors import Refusal

make_tuple: Any = namedtuple  # with fields that are found while the program is compiled
_comparing: ContextVar[frozenset[type]] = ContextVar("pcbatch_comparing", default=frozenset())


@lru_cache(maxsize=1024)
def _parts(cls: Any, name: str, inside: bool) -> Value:
    """The named tuple of the fields by which `dataclass` compares objects of a class; None where it does not.

    Of objects `inside` of tuples Python asks whether they are equal first, so that both methods must be its own.
    """
    names = (("__eq__",) if inside or name in ("eq", "ne") else ()) + (() if name in ("eq", "ne") else (f"__{name}__",))
    owners = {next((base for base in cls.__mro__ if one in vars(base)), object) for one in names}
    made = [inspect.getattr_static(cls, one, None) for one in names]
    if len(owners) > 1 or not all(isinstance(one, FunctionType) and is_generated(one.__code__) for one in made):
        return None
    owner: Any = owners.pop()
    if "__dataclass_params__" not in vars(owner) or (name == "ne" and cls.__ne__ is not object.__ne__):
        return None
    compared = tuple(field.name for field in fields(owner) if field.compare)
    parts: Value = make_tuple(cls.__name__, compared, rename=True)
    parts.pcbatch_class, parts.pcbatch_names = cls, compared
    return parts


def names_compared(cls: type) -> tuple[str, ...] | None:
    """Return the fields by which `dataclass` finds objects of a class equal; None where it does not."""
    parts = _parts(cls, "eq", False)
    return None if parts is None else parts.pcbatch_names


def has_order(value: Value, name: str, records: bool = False) -> bool:
    """Return whether `compared` puts a tuple in the place of an object in a value."""
    if isinstance(value, tuple | list):
        return any(has_order(part, name, records) for part in value)
    cls = type(value) if not isinstance(value, Joinable) else value.only_class() if records else None
    return cls is not None and _parts(cls, name, True) is not None


def compared(value: Value, name: str, records: bool = False) -> Value:
    """Return a value with tuples of fields in place of objects, in tuples and lists too, for the comparison `name`.

    References to records compare themselves, and may be None: they are left, unless `records` asks for a key of a sort.
    """
    if (as_compared := getattr(type(value), "as_compared", None)) is not None:
        return as_compared(value)
    if not has_order(value, name, records):
        return value
    if isinstance(value, tuple | list):
        parts = [compared(part, name, records) for part in value]
        return type(value)._make(parts) if hasattr(value, "_make") else type(value)(parts)
    cls, value = (value.only_class(), value.present()) if isinstance(value, Joinable) else (type(value), value)
    return fields_of(value, cls, name, records, True)


def fields_of(value: Value, cls: Any, name: str, records: bool = False, inside: bool = False) -> Value:
    """Return the tuple of fields of an object of a class; None if `dataclass` has not made the comparison `name`."""
    made = _parts(cls, name, inside)
    if made is None:
        return None
    with comparing(cls, value):
        return made(*(compared(getattr(value, one), name, records) for one in made.pcbatch_names))


class Nested(OfObjects):
    """A comparison by fields comes to a class again that is being compared."""


def is_comparing() -> bool:
    """Return whether objects are being compared by their fields."""
    return bool(_comparing.get())


def comparing(cls: type, *objects: Value) -> AbstractContextManager[None]:
    """Return the context in which two objects of a class are compared; refuses it inside of itself.

    Of `objects` that hold others of their class become records, which may be compared so.
    """
    if cls in _comparing.get():
        title = f"objects of {cls.__name__} hold others of {cls.__name__} in a field that is compared"
        refused = Nested("PCB320", title, helps=("leave it out of the comparison: `field(compare=False)`",))
        refused.values = objects
        raise refused
    return setting(_comparing, _comparing.get() | {cls})


class Compared(Refusal):
    """Objects are put in an order by a method of the user's: the compiler writes out the comparisons, if they change
    nothing, as Python makes others."""

    def __init__(self, name: str, changes: bool, along: tuple[CodeType, ...]) -> None:
        title = f"objects of {name} are put in an order by `{name}.__lt__`, which cannot be written out here"
        helps = (f"give the order of `{name}.__lt__` by a key: `key=lambda x: ...`",)
        cures = Cure.NONE if changes else Cure.COMPARE | Cure.ALONG
        super().__init__("PCB305", title, helps=helps, functions=along, cures=cures)


def refuse_own_order(value: Value) -> None:
    """Refuse an object whose order is told by a method of the user's (Compared)."""
    record = isinstance(value, Joinable)
    classes = value.classes() if record else (type(value),)
    found = [(cls, inspect.getattr_static(cls, "__lt__", None)) for cls in classes]
    own = [(cls, one.__code__) for cls, one in found if isinstance(one, FunctionType) and is_user_code(one.__code__)]
    own = [(cls, code) for cls, code in own if not is_generated(code)]
    if own:
        codes = tuple(dict.fromkeys(code for _, code in own))
        raise Compared(own[0][0].__name__, any(map(_changes, codes)), codes if record else ())


def _changes(code: CodeType) -> bool:
    """Whether a comparison may change something, as far as its code tells."""
    names = [one.opname for one in dis.get_instructions(code)]
    stores = any(name.startswith(("STORE_", "DELETE_")) and "FAST" not in name for name in names)
    return stores or any(facts(name).changes for name in code.co_names)


def comparing_elements(operation: Callable[[], Value], element: Callable[[], Value]) -> Value:
    """Return what an operation that compares elements gives.

    Args:
        operation: the operation.
        element: gives one of what is compared; called only where a comparison branches.

    Raises:
        Compared: a method of the user's that compares them branches, which the compiler writes out.
    """
    try:
        return operation()
    except jax.errors.TracerBoolConversionError as error:
        branched = error
    refuse_own_order(element())  # after the handler: the place of the call is what counts
    raise branched


def ask_which(a: Value, b: Value) -> None:
    """Let two objects of a class without `__eq__` be records of the lane, where Python asks which of them they are.

    One that comes from another primitive, or out of a container, is another object here than it was there.
    """
    if a is not b and is_told_by_identity(a) and type(a) is type(b):
        title = f"objects of the class {type(a).__name__} are told apart by their identity"
        raise by_identity("PCB305", title, "compare fields of theirs, or give the class an `__eq__`", a, b)


def is_told_by_identity(value: Value) -> bool:
    """Return whether a value is an object that a lane has made, of a class without `__eq__`."""
    method: Any = getattr(type(value), "__eq__")  # noqa: B009 - which function it is
    of_object = not isinstance(value, type) and method is object.__eq__ and is_plain_object(value)
    return of_object and not jax.tree_util.all_leaves([value])


def pair(a: Value, b: Value, name: str) -> tuple[Value, Value] | None:
    """Return what is compared in place of two objects of one class, or of tuples; None if that is what they are."""
    if isinstance(a, tuple | list) and isinstance(b, tuple | list) and (has_order(a, name) or has_order(b, name)):
        return compared(a, name), compared(b, name)
    cls, other = map(type, (a, b))
    if cls is not other or isinstance(a, Joinable) or _parts(cls, name, False) is None:
        return None
    return fields_of(a, cls, name), fields_of(b, cls, name)


def of_two_classes(a: Value, b: Value) -> bool:
    """Return whether two tuples stand for objects of different classes, or one of them for none."""
    return getattr(a, "pcbatch_class", None) is not getattr(b, "pcbatch_class", None)
