"""Attributes of records: fields that are read, and assigned in those made in lanes, and what their classes have."""

from __future__ import annotations

import inspect
from collections.abc import Iterable
from contextlib import AbstractContextManager, nullcontext
from dataclasses import replace
from types import FunctionType, MethodType
from typing import TYPE_CHECKING, Any

import jax.numpy as jnp

from pcbatch.data.aliasing import note_value
from pcbatch.data.checks import limit, require
from pcbatch.data.container import lane_value
from pcbatch.data.object_parts import is_frozen
from pcbatch.data.objects import decode
from pcbatch.data.objects.ref_type import (
    MADE_TABLE,
    REFUSED,
    class_at,
    is_array,
    is_in,
    methods_of,
    refused,
    require_present,
    static_attribute,
)
from pcbatch.data.objects.tables import columns_of
from pcbatch.data.objects.tuples.classes import python_class
from pcbatch.data.origins import note_call
from pcbatch.data.values import Column, Value
from pcbatch.errors import Refusal

if TYPE_CHECKING:
    from pcbatch.data.objects.reference import Ref


def attribute(ref: Ref, name: str) -> Value:
    """Return an attribute of a record: a field, or what its class has under this name."""
    type_ = ref.pcbatch_type
    if is_array(ref):
        raise AttributeError(f"'list' object has no attribute '{name}'")
    if not type_.classes:
        raise AttributeError(f"'NoneType' object has no attribute '{name}'")
    places = [(c, place) for c in type_.classes if (place := type_.schema.place(c, name)) is not None]
    others = [c for c in type_.classes if type_.schema.place(c, name) is None]
    if not places:
        return _of_class(ref, name)
    require_present(ref, "AttributeError", f"'NoneType' object has no attribute '{name}'")
    constants = [(c, _constant(class_at(type_, c), name)) for c in others if hasattr(class_at(type_, c), name)]
    if any(value is None for _, value in constants):
        raise refused(f"`{name}` is a field of some classes of {ref!r}, and not of others", "use `match`")
    _require_attribute(ref, name, [c for c in others if not hasattr(class_at(type_, c), name)])
    values = _values(ref, places)
    merged = _either_of(ref, name, [*constants, *((c, value) for (c, _), value in zip(places, values, strict=True))])
    if len(values) == 1 or type_.table != MADE_TABLE:
        return merged
    type_.schema.note([place for _, place in places], merged)
    return note_value(ref, merged)  # no view of any of the lists: what changes it is stored back


def _require_attribute(ref: Ref, name: str, lacking: list[int]) -> None:
    """Let the lane raise AttributeError where a record is of a class that lacks an attribute."""
    for c in lacking:
        absent = jnp.logical_not(is_in(ref, [c]))
        title = f"'{class_at(ref.pcbatch_type, c).__name__}' object has no attribute '{name}'"
        require(absent, "AttributeError", title)


def _constant(cls: type, name: str) -> Value:
    """The number or the text that a class has under a name, a text as one of the lane; None for anything else."""
    found = inspect.getattr_static(cls, name, None)
    return found if type(found) in (int, float, bool) else lane_value(found) if type(found) is str else None


def class_attribute(ref: Ref, name: str) -> Value:
    """Return `type(x).name` of a record of several classes, a number or a text; None for anything else."""
    type_ = ref.pcbatch_type
    found = [(c, getattr(python_class(class_at(type_, c)), name, None)) for c in type_.classes]
    if len(found) < 2 or type_.optional or any(type(value) not in (int, float, bool, str) for _, value in found):
        return None
    return _either_of(ref, name, [(c, lane_value(value) if type(value) is str else value) for c, value in found])


def _either_of(ref: Ref, name: str, values: list[tuple[int, Value]]) -> Value:
    """The value of the class that a record is of."""
    merged = values[-1][1]
    for c, value in values[-2::-1]:
        merged = decode.either(is_in(ref, [c]), value, merged, name)
    return merged


def _values(ref: Ref, places: list[tuple[int, Column]]) -> list[Value]:
    """The values at places in the tables, one for each class that the record may be of."""
    type_ = ref.pcbatch_type
    if type_.table == MADE_TABLE:
        return [type_.schema.read(place, ref.pcbatch_id) for _, place in places]
    columns = columns_of(type_.table)
    return [
        decode.value(kind, columns, column, _row(ref, c), type_.table, type_.schema) for c, (kind, column) in places
    ]


def _row(ref: Ref, cls: int) -> Value:
    first = ref.pcbatch_type.schema.first[cls]
    return ref.pcbatch_id - first if first else ref.pcbatch_id


def changing(ref: Ref, name: str, levels: Iterable[bool]) -> AbstractContextManager[None]:
    """Note what changes in a field of a record meanwhile: the object in it, `True`, or those inside that, `False`."""
    places = _made_places(ref, name)
    return ref.pcbatch_type.schema.changing(places, levels) if places else nullcontext()


def note_changed(ref: Ref, name: str) -> None:
    """Note that the object in a field of a record has changed in place, and got what it is by now."""
    for place in _made_places(ref, name):
        ref.pcbatch_type.schema.changed(place)


def _made_places(ref: Ref, name: str) -> list[tuple[int, int]]:
    """The places of a field in the classes of a record that is made in a lane."""
    type_ = ref.pcbatch_type
    found = [type_.schema.place(c, name) for c in type_.classes] if type_.table == MADE_TABLE else []
    return [place for place in found if place is not None]


def put_back(ref: Ref, name: str, value: Value) -> None:
    """Store what has been read from a field of a record, and changed, in that field again."""
    for c in ref.pcbatch_type.classes:
        place = ref.pcbatch_type.schema.place(c, name)
        if place is not None:
            ref.pcbatch_type.schema.write(place, ref.pcbatch_id, value, True)


def assign(ref: Ref, name: str, value: Value) -> None:
    """Store a value in a field of a record made in a lane, as `ref.name = value` does."""
    type_ = ref.pcbatch_type
    for cls in type_.types:
        attribute = inspect.getattr_static(cls, name, None)
        if isinstance(attribute, property):
            if attribute.fset is None:
                raise AttributeError(f"property '{name}' of '{cls.__name__}' object has no setter")
            raise refused(f"`{name}` is a property of {cls.__name__}", "write a method that changes the object")
        if issubclass(cls, tuple) or is_frozen(cls):
            raise AttributeError(f"cannot assign to field '{name}'")
        if "__setattr__" in methods_of(cls):
            raise refused(f"{cls.__name__} has a `__setattr__` of its own", "write a method that changes the object")
    places = [type_.schema.place(c, name) for c in type_.classes]
    lacking = [c for c, place in zip(type_.classes, places, strict=True) if place is None]
    names = " or ".join(class_at(type_, c).__name__ for c in lacking)
    title = f"`{name}` is no attribute that `__init__` of {names} sets"
    if len(lacking) == len(places):
        known = all(hasattr(cls, name) for cls in type_.types)
        help = f"to what the class has: `self.{name} = self.{name}`" if known else f"`self.{name} = None`"
        raise refused(title, f"set it there{',' if known else ':'} {help}")
    if lacking:
        limit(jnp.logical_not(is_in(ref, lacking)), title)
    require_present(ref, "AttributeError", f"'NoneType' object has no attribute '{name}'")
    for place in places:
        if place is not None:
            type_.schema.write(place, ref.pcbatch_id, value)


def _note_methods(ref: Ref, name: str) -> None:
    """Have the methods or properties of several classes compiled along, so that each lane calls that of its object."""
    found = [inspect.getattr_static(cls, name, None) for cls in ref.pcbatch_type.types]
    methods = [one.fget if isinstance(one, property) else getattr(one, "__func__", one) for one in found]
    codes = [method.__code__ for method in methods if isinstance(method, FunctionType)]
    if codes and all(map(callable, methods)):
        for code in codes:
            note_call(code)
        title = f"the classes of {ref!r} have methods `{name}` of their own"
        raise Refusal("PCB305", title, helps=(f"call `{name}` in a statement of the batched function",))


def _of_class(ref: Ref, name: str) -> Any:
    """Return an attribute that a record has from its class: a method, a property, a constant."""
    type_ = ref.pcbatch_type
    having = tuple(c for c in type_.classes if hasattr(class_at(type_, c), name))
    if not having:
        raise AttributeError(f"'{type_.types[0].__name__}' object has no attribute '{name}'")
    _require_attribute(ref, name, [c for c in type_.classes if c not in having])
    ref = ref.typed(replace(type_, classes=having))
    types = ref.pcbatch_type.types
    found = static_attribute(ref, name)
    require_present(ref, "AttributeError", f"'NoneType' object has no attribute '{name}'")
    match found:
        case FunctionType():
            return MethodType(found, ref)
        case property(fget=FunctionType() as getter):
            return getter(ref)
        case classmethod() if len(types) > 1:
            _note_methods(ref, name)
        case staticmethod() | classmethod():
            return getattr(types[0], name)
        case None:
            constants = [(c, _constant(class_at(type_, c), name)) for c in having]
            if all(value is not None for _, value in constants):
                return _either_of(ref, name, constants)
            _note_methods(ref, name)
            raise refused(f"the classes of {ref!r} differ in `{name}`", "tell them apart: `match x: case A(): ...`")
        case _ if isinstance(found, int | float | bool | str | tuple) or isinstance(found, type):
            return found
    raise refused(f"`{name}` of {REFUSED} cannot be read in a lane", "keep it in a field")
