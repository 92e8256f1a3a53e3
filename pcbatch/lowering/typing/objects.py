"""Objects of the user's plain classes become pytrees of their attributes where a lane makes them.

    p = Point(x, y)        # `class Point` with an `__init__`, or a dataclass: its attributes are values of the lane

A class that nobody has registered with JAX is registered when its first object is made in a lane. Objects that existed
before stay what they are, known while compiling.
"""

from __future__ import annotations

import dataclasses
import sys
import sysconfig
from collections.abc import Container, Iterator
from enum import Enum
from types import CodeType
from typing import Any

import jax

from pcbatch.containers.aliasing import Key
from pcbatch.containers.container import Container as LaneContainer

_registered: list[type] = []
_INSTALLED = tuple({sysconfig.get_paths()[name] for name in ("purelib", "platlib", "stdlib", "platstdlib")})


def is_written_here(code: CodeType) -> bool:
    """Return whether code is that of no installed package, and not of Python."""
    return not code.co_filename.startswith((*_INSTALLED, "<frozen"))


def register_made(value: Any, existing: Container[Key]) -> None:
    """Register the classes of the objects in a value with JAX, but for objects that existed before."""
    for leaf in jax.tree.leaves(value):
        if is_plain_object(leaf) and ("object", id(leaf)) not in existing:
            cls = type(leaf)
            if jax.tree_util.all_leaves([leaf]):  # an object before it may have the same class
                jax.tree_util.register_pytree_with_keys(cls, _flatten, _unflattener(cls))
                _registered.append(cls)
            for part in _attributes(leaf).values():
                register_made(part, existing)


def registered_classes() -> int:
    """Return how many classes `register_made` has registered."""
    return len(_registered)


def on_cycle(value: Any) -> list[Any]:
    """Return the objects of plain classes on a cycle of objects that hold each other; none if there is no cycle."""
    path: dict[int, Any] = {}
    done: dict[int, Any] = {}
    stack: list[tuple[Any, bool]] = [(value, False)]
    while stack:
        part, leaving = stack.pop()
        if leaving:
            done[id(part)] = path.pop(id(part))
        elif id(part) in path:
            around = list(path.values())
            start = next(k for k, one in enumerate(around) if one is part)
            return [one for one in around[start:] if is_plain_object(one)]
        elif id(part) not in done and (inside := _parts(part)):
            path[id(part)] = part
            stack += [(part, True), *((one, False) for one in inside)]
    return []


def _parts(value: Any) -> list[Any]:
    """The parts of an object that may hold it."""
    if isinstance(value, list | tuple):
        return list(value)
    if isinstance(value, dict):
        return list(value.values())
    simple = isinstance(value, jax.Array | int | float | str | bytes | None | LaneContainer)
    return [] if simple or not is_plain_object(value) else list(_attributes(value).values())


def is_plain_object(value: Any) -> bool:
    """Return whether a value is an object of a plain class of the user's: nothing but its attributes."""
    cls = type(value)
    if cls.__flags__ & 1 << 9 == 0 or isinstance(value, type | Enum | BaseException) or hasattr(cls, "__next__"):
        return False  # bit 9: a class made by a statement
    if hasattr(cls, "__array__") or hasattr(cls, "__jax_array__") or not _has_plain_layout(cls):
        return False
    module = sys.modules.get(cls.__module__)
    file = str(getattr(module, "__file__", None) or "")
    return not file.startswith(_INSTALLED) and cls.__module__.partition(".")[0] not in ("pcbatch", "jax", "numpy")


def _has_plain_layout(cls: type) -> bool:
    """Whether objects of a class hold nothing but attributes: no class of Python's own is among its bases."""
    return all(base is object or base.__flags__ & 1 << 9 for base in cls.__mro__)


def _attributes(value: Any) -> dict[str, Any]:
    found = dict(getattr(value, "__dict__", {}))
    if dataclasses.is_dataclass(value):
        found |= {field.name: getattr(value, field.name) for field in dataclasses.fields(value)}
    slots = (name for cls in type(value).__mro__ for name in _slots(cls))
    return found | {name: getattr(value, name) for name in slots if hasattr(value, name)}


def _slots(cls: type) -> Iterator[str]:
    slots = vars(cls).get("__slots__", ())
    names = (slots,) if isinstance(slots, str) else tuple(slots)
    return (name for name in names if name not in ("__dict__", "__weakref__"))


def _flatten(value: Any) -> tuple[tuple[tuple[Any, Any], ...], tuple[str, ...]]:
    found = _attributes(value)
    names = tuple(sorted(found))
    return tuple((jax.tree_util.GetAttrKey(name), found[name]) for name in names), names


def _unflattener(cls: type) -> Any:
    def unflatten(names: tuple[str, ...], children: Any) -> Any:
        value: Any = object.__new__(cls)
        for name, child in zip(names, children, strict=True):
            object.__setattr__(value, name, child)
        return value

    return unflatten
