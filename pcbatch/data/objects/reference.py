"""A reference to a record, the value of a lane: one number, whatever classes it may lead to.

Reading a field gathers from a column of the shared tables. The tables themselves are no part of the value: they are
further parameters of the program, and every primitive that reads a reference can use them (see `tables.py`).
"""

from __future__ import annotations

import inspect
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import partialmethod, reduce
from types import FunctionType
from typing import Any

import jax
import jax.numpy as jnp

from pcbatch.data.checks import limit, require
from pcbatch.data.joinable import Joinable
from pcbatch.data.objects import decode
from pcbatch.data.objects.schema import NONE
from pcbatch.data.objects.tables import WantsCopies, columns_of
from pcbatch.data.origins import number
from pcbatch.data.sequences.lane_iterator import Asked
from pcbatch.errors import Refusal

REFUSED = "a record of packed objects"
MADE_TABLE = -1
"""The number of the table of records that are made in lanes, which are in none."""
TRUTH = ("__bool__", "__len__")  # the methods that Python asks, in this order


@dataclass(frozen=True, slots=True)
class RefType:
    """The static type of a reference.

    Attributes:
        table: the number of the `Packed` that it leads into, among those of a call; `MADE_TABLE` for records that are
            made in lanes.
        schema: of that `Packed`, or of the records made in lanes.
        classes: what it may refer to, by their numbers in the schema.
        optional: whether it may be None.
    """

    table: int
    schema: Any  # a `Schema`, or a `MadeSchema`
    classes: tuple[int, ...]
    optional: bool

    @property
    def types(self) -> tuple[type, ...]:
        """The classes themselves, as objects of Python."""
        return tuple(self.schema.classes[c].cls for c in self.classes)

    def __str__(self) -> str:
        return " | ".join([*(cls.__name__ for cls in self.types), *(["None"] if self.optional else [])])


@jax.tree_util.register_pytree_with_keys_class
class Ref(Joinable):
    """A reference to a record, or an array of them: the roots of a `Packed` that lanes share."""

    __slots__ = ("pcbatch_id", "pcbatch_type")
    pcbatch_id: Any
    pcbatch_type: RefType

    def __init__(self, id_: Any, type_: RefType) -> None:
        object.__setattr__(self, "pcbatch_id", id_)
        object.__setattr__(self, "pcbatch_type", type_)

    def tree_flatten_with_keys(self) -> tuple[tuple[tuple[Any, Any]], RefType]:
        """Return the number of the row, and the type."""
        return ((jax.tree_util.GetAttrKey("id"), self.pcbatch_id),), self.pcbatch_type

    def tree_flatten(self) -> tuple[tuple[Any], RefType]:
        """Return the number of the row, and the type."""
        return (self.pcbatch_id,), self.pcbatch_type

    @classmethod
    def tree_unflatten(cls, type_: RefType, children: Sequence[Any]) -> Ref:
        """Return the reference with a number."""
        return cls(children[0], type_)

    def covering(self, other: Any) -> RefType | None:
        """Return the type of a reference that may be this one or another one, or None."""
        merged = joined(self, other) if other is None or isinstance(other, Ref) else None
        return None if merged is None else merged.pcbatch_type

    def typed(self, static: RefType) -> Ref:
        """Return the reference with a wider type."""
        return Ref(self.pcbatch_id, static)

    @staticmethod
    def none(static: RefType, shape: tuple[int, ...]) -> Ref:
        """Return references of a shape, all None."""
        return Ref(jnp.full(shape, NONE, jnp.int32), static)

    def __repr__(self) -> str:
        return str(self.pcbatch_type)

    def __getattr__(self, name: str) -> Any:
        """Read a field of the record; the lane fails with an AttributeError if there is none."""
        if name.startswith("__"):
            raise AttributeError(name)
        return attribute(self, name)

    def __copy__(self) -> Ref:
        return self

    def __deepcopy__(self, memo: Any) -> Ref:
        return self

    def __setattr__(self, name: str, value: Any) -> None:
        if self.pcbatch_type.table == MADE_TABLE:
            from pcbatch.data.objects.changes import assign

            assign(self, name, value)
            return
        raise WantsCopies(f"`{name}` of {REFUSED} is assigned", frozenset({self.pcbatch_type.table}))

    def __bool__(self) -> bool:
        return bool(truth(self))

    def __len__(self) -> int:
        if _is_array(self):
            return int(self.pcbatch_id.shape[0])
        return len(_tuple_fields(self, "`len`"))

    def __getitem__(self, index: Any) -> Any:
        if _is_array(self):
            return _root_at(self, index)
        values = _tuple_fields(self, "an index")
        return [attribute(self, name) for name in values][index] if isinstance(index, slice) else _field(self, index)

    def __iter__(self) -> Any:
        if _is_array(self):
            return iter([_root_at(self, k) for k in range(len(self))])
        if any(
            isinstance(inspect.getattr_static(cls, "__iter__", None), FunctionType) for cls in self.pcbatch_type.types
        ):
            raise Asked
        return iter([attribute(self, name) for name in _tuple_fields(self, "unpacking")])

    def __eq__(self, other: object) -> Any:
        if other is None:
            return is_none(self)
        if isinstance(other, Ref) and all("__eq__" not in methods_of(cls) for cls in self.pcbatch_type.types):
            return same(self, other, "==")
        from pcbatch.data.objects.order import equal_by_fields

        if (equal := equal_by_fields(self, other)) is not None:
            return equal
        raise refused(
            "`==` of records would compare all that they lead to",
            "write `a is b`, or compare fields: `a.word == b.word`",
        )

    def __ne__(self, other: object) -> Any:
        return number(jnp.logical_not(self == other))

    def __hash__(self) -> int:
        raise refused(f"{REFUSED} has no hash in a lane", "keep a number in the record, and use that as the key")

    def _ordered(self, name: str, other: object) -> Any:
        from pcbatch.data.objects.order import by_fields

        return by_fields(name, self, other)

    __lt__, __le__ = partialmethod(_ordered, "lt"), partialmethod(_ordered, "le")
    __gt__, __ge__ = partialmethod(_ordered, "gt"), partialmethod(_ordered, "ge")

    def only_class(self) -> type | None:
        """Return the class that the record is of; None if it may be of several, or is an array of references."""
        types = self.pcbatch_type.types
        return types[0] if len(types) == 1 and not _is_array(self) else None

    def present(self) -> Ref:
        """Return this reference where it is not None; the lane stops where it is, as None has no place in an order."""
        limit(self.pcbatch_id >= 0, "None is among objects that are sorted: Python refuses it where it compares it")
        return as_class(self, object)


def _own(cls: type) -> set[str]:
    """The names that the classes before `tuple` define."""
    return {name for base in cls.__mro__ if base not in (tuple, object) for name in vars(base)}


def methods_of(cls: type) -> set[str]:
    """Return the names that a class defines itself, and classes that it is made of."""
    return {name for base in cls.__mro__ if base is not object for name in vars(base)}


def refused(title: str, *helps: str) -> Refusal:
    """Return the error about what a record cannot do."""
    return Refusal("PCB320", title, helps=helps)


def _is_array(ref: Ref) -> bool:
    return bool(getattr(ref.pcbatch_id, "shape", ()))


def _root_at(ref: Ref, index: Any) -> Ref:
    """An element of an array of references, as Python indexes a list."""
    ids, length = ref.pcbatch_id, len(ref)
    if isinstance(index, slice):
        return Ref(ids[index], ref.pcbatch_type)
    require((index < length) & (index >= -length), "IndexError", "list index out of range")
    return Ref(ids[index], ref.pcbatch_type)


def element(ref: Ref, index: Any) -> Ref:
    """Return an element of an array of references, at an index that is known to be in it."""
    return Ref(ref.pcbatch_id.at[index].get(mode="clip"), ref.pcbatch_type)


def _tuple_fields(ref: Ref, what: str) -> tuple[str, ...]:
    """The fields of a named tuple; refuses records of another class, or of several."""
    types = ref.pcbatch_type.types
    if len(types) != 1 or not issubclass(types[0], tuple):
        raise refused(f"{what} needs a named tuple, and this is {ref!r}", "read fields by their names: `x.left`")
    require_present(ref, "TypeError", "'NoneType' object is not a sequence")
    return tuple(types[0]._fields)  # type: ignore[attr-defined]


def _field(ref: Ref, index: Any) -> Any:
    names = _tuple_fields(ref, "an index")
    return attribute(ref, names[index])


def is_none(ref: Ref) -> Any:
    """Return whether a reference is None: bool[], or False where it cannot be."""
    if _is_array(ref) or not ref.pcbatch_type.optional:
        return False
    if not ref.pcbatch_type.classes:
        return True  # all that was packed is None
    return number(ref.pcbatch_id < 0)


def same(a: Ref, b: Ref, operator: str = "is") -> Any:
    """Return whether two references are to one object; `operator` is the one that asks, for messages."""
    if a.pcbatch_type.table != b.pcbatch_type.table or a.pcbatch_type.schema != b.pcbatch_type.schema:
        if MADE_TABLE in (a.pcbatch_type.table, b.pcbatch_type.table):
            return False  # one is made in the lane, the other is not
        raise refused(
            f"`{operator}` compares records of two arguments, which were packed apart",
            "pack the objects together, `trees = pcbatch.pack([*a, *b])`, and pass `trees[:n]` and `trees[n:]`",
        )
    return number(a.pcbatch_id == b.pcbatch_id)


def truth(ref: Ref) -> Any:
    """Return the condition that a record stands for: it is true, and None is not."""
    if _is_array(ref):
        return len(ref) > 0
    types = ref.pcbatch_type.types
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


def is_in(ref: Ref, classes: Sequence[int]) -> Any:
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


def isinstance_(ref: Ref, cls: Any) -> Any:
    """The builtin `isinstance` for a reference."""
    if _is_array(ref):
        return issubclass(list, cls)
    inside = is_in(
        ref, [c for c in ref.pcbatch_type.classes if issubclass(ref.pcbatch_type.schema.classes[c].cls, cls)]
    )
    if ref.pcbatch_type.optional and isinstance(None, cls):
        return number(jnp.logical_or(inside, ref.pcbatch_id < 0))
    return inside


def is_exactly(ref: Ref, classes: Sequence[Any]) -> Any:
    """Return whether the type of a record is one of some classes."""
    numbers = [c for c in ref.pcbatch_type.classes if ref.pcbatch_type.schema.classes[c].cls in classes]
    inside = is_in(ref, numbers)
    if ref.pcbatch_type.optional and type(None) in classes:
        return number(jnp.logical_or(inside, ref.pcbatch_id < 0))
    return inside


def type_of(ref: Ref) -> type:
    """The builtin `type` for a reference, which is known if it leads to one class."""
    if len(ref.pcbatch_type.classes) != 1 or ref.pcbatch_type.optional:
        raise refused(f"the type of this record is that of the lane: {ref!r}", "write `isinstance(x, TheClass)`")
    cls: type = ref.pcbatch_type.types[0]
    return cls


def hasattr_(ref: Ref, name: str) -> Any:
    """The builtin `hasattr` for a reference."""
    type_ = ref.pcbatch_type
    return is_in(ref, [c for c in type_.classes if type_.schema.place(c, name) or hasattr(_cls(type_, c), name)])


def _cls(type_: RefType, number: int) -> type:
    cls: type = type_.schema.classes[number].cls
    return cls


def as_class(ref: Ref, cls: type) -> Ref:
    """Return a reference that is known to lead to a class."""
    type_ = ref.pcbatch_type
    classes = tuple(c for c in type_.classes if issubclass(_cls(type_, c), cls))
    return Ref(ref.pcbatch_id, replace(type_, classes=classes or type_.classes, optional=False))


def require_present(ref: Ref, exception: str, message: str) -> None:
    """Let the lane fail where a record is None."""
    if ref.pcbatch_type.optional:
        require(ref.pcbatch_id >= 0, exception, message)


def attribute(ref: Ref, name: str) -> Any:
    """Return an attribute of a record: a field, or what its class has under this name."""
    type_ = ref.pcbatch_type
    if _is_array(ref):
        raise AttributeError(f"'list' object has no attribute '{name}'")
    if not type_.classes:
        raise AttributeError(f"'NoneType' object has no attribute '{name}'")
    places = [(c, place) for c in type_.classes if (place := type_.schema.place(c, name)) is not None]
    others = [c for c in type_.classes if type_.schema.place(c, name) is None]
    if not places:
        from pcbatch.data.objects.changes import of_class

        return of_class(ref, name)
    require_present(ref, "AttributeError", f"'NoneType' object has no attribute '{name}'")
    for c in others:
        if hasattr(_cls(type_, c), name):
            raise refused(f"`{name}` is a field of some classes of {ref!r}, and not of others", "use `match`")
        inside = is_in(ref, [c])
        require(
            jnp.logical_not(inside), "AttributeError", f"'{_cls(type_, c).__name__}' object has no attribute '{name}'"
        )
    values = _values(ref, places)
    merged = values[-1]
    for (c, _), value in zip(places[-2::-1], values[-2::-1], strict=True):
        merged = decode.either(is_in(ref, [c]), value, merged, name)
    return merged


def _values(ref: Ref, places: list[tuple[int, Any]]) -> list[Any]:
    """The values at places in the tables, one for each class that the record may be of."""
    type_ = ref.pcbatch_type
    if type_.table == MADE_TABLE:
        return [type_.schema.read(place, ref.pcbatch_id) for _, place in places]
    columns = columns_of(type_.table)
    return [
        decode.value(kind, columns, column, _row(ref, c), type_.table, type_.schema) for c, (kind, column) in places
    ]


def _row(ref: Ref, cls: int) -> Any:
    first = ref.pcbatch_type.schema.first[cls]
    return ref.pcbatch_id - first if first else ref.pcbatch_id


def static_attribute(ref: Ref, name: str) -> Any:
    """Return what the class of a record has under a name, unbound; None if its classes differ in it."""
    found = [inspect.getattr_static(cls, name, None) for cls in ref.pcbatch_type.types]
    return found[0] if found and all(one is found[0] for one in found) else None


def joined(a: Ref, b: Ref | None) -> Ref | None:
    """Return the type that covers two references, or one and None; None if they lead into different tables.

    The leaves are those of `a`.
    """
    one = a.pcbatch_type
    if b is None:
        return Ref(a.pcbatch_id, replace(one, optional=True))
    other = b.pcbatch_type
    if (one.table, one.schema) != (other.table, other.schema):
        return None
    classes = tuple(sorted({*one.classes, *other.classes}))
    return Ref(a.pcbatch_id, replace(one, classes=classes, optional=one.optional or other.optional))
