"""Objects of the user's while an `__init__` that is compiled along fills them, and which method an object has."""

from __future__ import annotations

import inspect
from collections.abc import Sequence
from dataclasses import replace
from types import FunctionType, MethodType
from typing import Any

import jax
import jax.numpy as jnp

from pcbatch.data.checks import limit, require
from pcbatch.data.functions.operators import eq
from pcbatch.data.members import MemberValue
from pcbatch.data.objects.equality import without_written
from pcbatch.data.objects.function_values import field_of
from pcbatch.data.objects.made import recorded
from pcbatch.data.objects.ref_type import is_in
from pcbatch.data.objects.reference import Ref
from pcbatch.data.optional import Optional
from pcbatch.data.origins import number
from pcbatch.data.values import Value
from pcbatch.decisions import Cure
from pcbatch.errors import Refusal


@jax.tree_util.register_pytree_with_keys_class
class Draft:
    """An object of a class with the attributes that it has so far."""

    def __init__(self, cls: type, attributes: dict[str, Value]) -> None:
        vars(self).update(attributes, pcbatch_class=cls)

    def tree_flatten_with_keys(self) -> tuple[tuple[tuple[Value, Value], ...], tuple[type, tuple[str, ...]]]:
        """Return the attributes, and the class with their names."""
        names = tuple(sorted(name for name in vars(self) if name != "pcbatch_class"))
        key = jax.tree_util.GetAttrKey
        return tuple((key(name), vars(self)[name]) for name in names), (self.pcbatch_class, names)

    @classmethod
    def tree_unflatten(cls, static: tuple[type, tuple[str, ...]], children: Sequence[Any]) -> Draft:
        """Return the object with these attributes."""
        return cls(static[0], dict(zip(static[1], children, strict=True)))

    def __getattr__(self, name: str) -> Value:
        """Return an attribute that the object has from its class."""
        if name.startswith("__"):
            raise AttributeError(name)
        owner = vars(self)["pcbatch_class"]
        found = inspect.getattr_static(owner, name, None)
        if found is None:
            raise AttributeError(f"'{owner.__name__}' object has no attribute '{name}'")
        if isinstance(found, property) and found.fget is not None:
            return found.fget(self)
        if isinstance(found, staticmethod | classmethod):
            return getattr(owner, name)
        return MethodType(found, self) if callable(found) and not isinstance(found, type) else found


def draft(cls: type) -> Draft:
    """Return an object of a class without attributes."""
    return Draft(cls, {})


def begun(value: Draft) -> bool:
    """Return True: the expression that makes an object goes on with its `__init__`."""
    return True


def finished(value: Draft) -> Value:
    """Return the object that a draft has become."""
    made: Value = object.__new__(value.pcbatch_class)
    for name, part in vars(value).items():
        if name != "pcbatch_class":
            object.__setattr__(made, name, part)
    return recorded(made)


def closed(cls: type, *captured: Value) -> Value:
    """Return a function as a value of the lane, of what it has captured."""
    made: Value = object.__new__(cls)
    for k, value in enumerate(captured):
        object.__setattr__(made, field_of(k), value)
    return recorded(made)


def meaning(cls: type, name: str) -> Any:
    """Return what tells apart what a call of a name means in classes: the function, and with it the class where that
    is an argument of it."""
    found = inspect.getattr_static(cls, name, None)
    return cls if isinstance(found, classmethod) or name == "__class__" else found


def runs(value: Value, name: str, owner: type, before: tuple[type, ...]) -> Value:
    """Return whether a method of an object is that of a class; `before` are classes whose it is known not to be.

    Where it can only be this one, the object must not be None, as Python has it, which asks None for its equality, too.
    """
    of_none = name in ("__eq__", "__ne__")
    if isinstance(value, Optional):
        inside = runs(value.value, name, owner, before)
        if inside is True and of_none:
            return number(value.present)
        if inside is True:
            require(value.present, *_of_none(name))
        return inside
    function = meaning(owner, name)
    if isinstance(value, Ref):
        type_ = value.pcbatch_type
        others = [meaning(cls, name) for cls in before]
        fields = {c for c in type_.classes if type_.schema.place(c, name) is not None}  # which hide what the class has
        classes = dict(zip(type_.classes, type_.types, strict=True))
        methods = {c: None if c in fields else meaning(cls, name) for c, cls in classes.items()}
        having = [c for c in methods if methods[c] is function]
        if not having:
            return False
        if all(methods[c] is function or any(methods[c] is one for one in others) for c in methods):
            if type_.optional and of_none:
                return number(value.pcbatch_id >= 0)
            if type_.optional:
                require(value.pcbatch_id >= 0, *_of_none(name))
            return True
        inside = is_in(value, having)
        return inside if isinstance(inside, bool) else number(jnp.asarray(inside))
    cls = vars(value)["pcbatch_class"] if isinstance(value, Draft) else type(value)
    cls = value.members if isinstance(value, MemberValue) else cls
    return meaning(cls, name) is function and name not in getattr(value, "__dict__", ())


def _of_none(name: str) -> tuple[str, str]:
    """The exception that Python raises where None is asked for a method, and its message."""
    if name == "__call__":
        return "TypeError", "'NoneType' object is not callable"
    return "AttributeError", f"'NoneType' object has no attribute '{name}'"


def of_class(value: Value, owner: type) -> Value:
    """Return the object of a method: a record is of the class that has the method, or of one below it."""
    if not isinstance(value, Ref):
        return value
    type_ = value.pcbatch_type
    below = tuple(c for c, cls in zip(type_.classes, type_.types, strict=True) if issubclass(cls, owner))
    if below in ((), type_.classes):
        return value
    limit(jnp.asarray(is_in(value, below)), f"a method of {owner.__name__} is called with an object of another class")
    return value.typed(replace(type_, classes=below, optional=False))


def equal_otherwise(a: Value, b: Value) -> Value:
    """Return `a == b` of objects whose classes have no `__eq__` of the user's, as methods that are compiled along are
    called for all others."""
    return eq(*(without_written(value) if isinstance(value, Ref) else value for value in (a, b)))


class Bases:
    """A stand-in for `super(cls, value)` of a record of the lane or of a draft: it has what is behind `cls`."""

    def __init__(self, cls: type, value: Value) -> None:
        self._cls, self._value = cls, value

    def __getattr__(self, name: str) -> Value:
        """Return what the classes behind have under a name; raises Refusal if that depends on the class of the
        object."""
        classes = self._value.pcbatch_type.types if isinstance(self._value, Ref) else (self._value.pcbatch_class,)
        found = {id(one): one for one in (_behind(self._cls, cls, name) for cls in classes)}
        if len(found) > 1:
            title = f"`super().{name}` means other methods in other classes of the object"
            raise Refusal("PCB320", title, helps=(f"name the class that has the method: `Base.{name}(self)`",))
        match next(iter(found.values())):
            case FunctionType() as function:
                return MethodType(function, self._value)
            case property(fget=FunctionType() as getter):
                return getter(self._value)
            case staticmethod(__func__=function):
                return function
            case classmethod(__func__=function) if len(classes) == 1:
                return MethodType(function, classes[0])
            case classmethod():
                title = f"`super().{name}` is a method of the class, and that is another one in other lanes"
                raise Refusal("PCB320", title, helps=("write a method of the object in its place",), cures=Cure.NONE)
            case None:
                raise AttributeError(f"'super' object has no attribute '{name}'")
            case made if made is object.__init__:
                return _nothing
            case constant:
                return constant


def super_(cls: type, value: Value) -> Value:
    """Return `super(cls, value)`, also of a record of the lane."""
    return Bases(cls, value) if isinstance(value, Ref | Draft) else super(cls, value)


def _behind(cls: type, of: type, name: str) -> Any:
    classes = of.__mro__[of.__mro__.index(cls) + 1 :]
    return next((vars(one)[name] for one in classes if name in vars(one)), None)


def _nothing() -> None:
    """Return None, as `object.__init__` does."""
