"""The parts of Python's objects, and whether an object can be changed."""

from __future__ import annotations

import dataclasses
import functools
import inspect
import site
import sys
import sysconfig
from collections.abc import Iterator
from enum import Enum
from pathlib import Path
from types import BuiltinMethodType, CodeType, MethodType, ModuleType
from typing import Any

import jax
import numpy as np

from pcbatch.data.optional import Optional

IMMUTABLE = (bool, int, float, complex, str, bytes, type, range, slice, jax.Array, np.generic, np.dtype, Enum)
"""Types without mutable parts; which arrays of JAX are views of others is found in the jaxpr."""

PACKAGES = tuple({*(sysconfig.get_paths()[name] for name in ("purelib", "platlib")), *site.getsitepackages()})
INSTALLED = (*PACKAGES, *(sysconfig.get_paths()[name] for name in ("stdlib", "platstdlib")))
"""The folders of installed packages, and of Python."""
OURS = str(Path(__file__).parents[1]) + "/"
_registered: list[type] = []
OTHERS = frozenset({"jax", "jaxlib", "numpy", "pcbatch", *sys.builtin_module_names})


def is_users(module: str) -> bool:
    """Return whether a module, by its name, is the user's own: of no installed package, not of Python, and not of here.

    A module without a file, as that of a notebook, is the user's.
    """
    file = str(getattr(sys.modules.get(module), "__file__", None) or "")
    return not file.startswith(INSTALLED) and module.partition(".")[0] not in OTHERS


def is_user_code(code: CodeType) -> bool:
    """Return whether code is the user's own, and not that of an installed package, of Python or of this package."""
    file = code.co_filename
    return not file.startswith((*INSTALLED, OURS, "<frozen")) and not file.endswith("/functools.py")


def is_generated(code: CodeType) -> bool:
    """Return whether code is of a text that a library has put together: a method that `dataclass` makes."""
    return code.co_filename == "<string>"


def is_frozen(cls: Any) -> bool:
    """Return whether no field of an object of a class is assigned after its `__init__`, as `dataclass` sees to."""
    return bool(getattr(getattr(cls, "__dataclass_params__", None), "frozen", False))


def fields_in_repr(cls: Any) -> tuple[str, ...] | None:
    """Return the fields that the `__repr__` of a dataclass or a named tuple shows; None if a class has another one."""
    owner = next(one for one in cls.__mro__ if "__repr__" in vars(one))
    function = inspect.unwrap(vars(owner)["__repr__"])
    if issubclass(cls, tuple) and function.__module__ == "collections":
        return tuple(getattr(cls, "_fields", ()))
    code = getattr(function, "__code__", None)
    if "__dataclass_fields__" in vars(owner) and code is not None and is_generated(code):
        return tuple(field.name for field in dataclasses.fields(owner) if field.repr)
    return None


def parts_of(value: Any) -> tuple[bool, list[Any]] | None:
    """Return whether an object can be changed, and what it holds; None for an object without parts."""
    if isinstance(value, Optional):
        return False, [value.value]
    if isinstance(value, np.ndarray):
        return True, [value.base] if isinstance(value.base, np.ndarray) else []
    if isinstance(value, dict):
        return True, list(value.values())
    if isinstance(value, tuple | frozenset):
        return False, list(value)
    if isinstance(value, functools.partial):
        return False, [value.func, *value.args, *value.keywords.values()]
    if isinstance(value, BuiltinMethodType | MethodType) and not isinstance(value.__self__, ModuleType | type):
        return False, [value.__self__]
    if isinstance(value, list | set):
        return True, list(value)
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        fields = [getattr(value, field.name, None) for field in dataclasses.fields(value)]
        return not type(value).__dataclass_params__.frozen, fields  # type: ignore[attr-defined]
    if is_plain_object(value) or (hasattr(value, "__dict__") and not callable(value)):
        return True, list(attributes(value).values())
    return None


def is_plain_object(value: Any) -> bool:
    """Return whether a value is an object of a plain class of the user's: nothing but its attributes."""
    cls = type(value)
    if cls.__flags__ & 1 << 9 == 0 or isinstance(value, type | Enum | BaseException):
        return False  # bit 9: a class made by a statement
    if hasattr(cls, "__array__") or hasattr(cls, "__jax_array__") or not _has_plain_layout(cls):
        return False
    return is_users(cls.__module__)


def _has_plain_layout(cls: type) -> bool:
    """Whether objects of a class hold nothing but attributes: no class of Python's own is among its bases."""
    return all(base is object or base.__flags__ & 1 << 9 for base in cls.__mro__)


def attributes(value: Any) -> dict[str, Any]:
    """Return the attributes of an object by name, those in slots and the fields of a dataclass among them."""
    found = dict(getattr(value, "__dict__", {}))
    if dataclasses.is_dataclass(value):
        found |= {field.name: getattr(value, field.name) for field in dataclasses.fields(value)}
    slots = (name for cls in type(value).__mro__ for name in _slots(cls))
    return found | {name: getattr(value, name) for name in slots if hasattr(value, name)}


def _slots(cls: type) -> Iterator[str]:
    slots = vars(cls).get("__slots__", ())
    names = (slots,) if isinstance(slots, str) else tuple(slots)
    return (name for name in names if name not in ("__dict__", "__weakref__"))


def register_class(cls: type) -> None:
    """Register a class with JAX, which nobody has registered."""
    jax.tree_util.register_pytree_with_keys(cls, _flatten, _unflattener(cls))
    _registered.append(cls)


def registered_classes() -> int:
    """Return how many classes `register_class` has registered."""
    return len(_registered)


def _flatten(value: Any) -> tuple[tuple[tuple[Any, Any], ...], tuple[str, ...]]:
    found = attributes(value)
    names = tuple(sorted(found))
    return tuple((jax.tree_util.GetAttrKey(name), found[name]) for name in names), names


def _unflattener(cls: type) -> Any:
    def unflatten(names: tuple[str, ...], children: Any) -> Any:
        value: Any = object.__new__(cls)
        for name, child in zip(names, children, strict=True):
            object.__setattr__(value, name, child)
        return value

    return unflatten
