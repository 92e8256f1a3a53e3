"""Objects of the user's plain classes become pytrees of their attributes where a lane makes them.

    p = Point(x, y)        # `class Point` with an `__init__`, or a dataclass: its attributes are values of the lane

A class that nobody has registered with JAX is registered when its first object is made in a lane. Objects that existed
before stay what they are, known while compiling.
"""

from __future__ import annotations

from collections.abc import Container, Iterable
from inspect import getattr_static
from types import CodeType, FunctionType
from typing import Any

import jax

from pcbatch.data.aliasing import Key
from pcbatch.data.container import Container as LaneContainer
from pcbatch.data.object_parts import attributes, is_plain_object, register_class


def register_made(value: Any, existing: Container[Key]) -> None:
    """Register the classes of the objects in a value with JAX, but for objects that existed before."""
    for leaf in jax.tree.leaves(value):
        if is_plain_object(leaf) and ("object", id(leaf)) not in existing:
            if jax.tree_util.all_leaves([leaf]):  # an object before it may have the same class
                register_class(type(leaf))
            for part in attributes(leaf).values():
                register_made(part, existing)


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


def constructors(values: Iterable[Any]) -> tuple[CodeType, ...]:
    """Return the code of the `__init__` of each object of a plain class in some values."""
    waiting, found, seen = list(values), dict[CodeType, None](), set[int]()
    while waiting:
        part = waiting.pop()
        if id(part) not in seen:
            seen.add(id(part))
            waiting += _parts(part)
            init = getattr_static(type(part), "__init__", None)
            if isinstance(init, FunctionType) and is_plain_object(part):
                found[init.__code__] = None
    return tuple(found)


def _parts(value: Any) -> list[Any]:
    """The parts of an object that may hold it."""
    if isinstance(value, list | tuple):
        return list(value)
    if isinstance(value, dict):
        return list(value.values())
    simple = isinstance(value, jax.Array | int | float | str | bytes | None | LaneContainer)
    return [] if simple or not is_plain_object(value) else list(attributes(value).values())
