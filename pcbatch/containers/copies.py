"""Objects that were read from containers of the lane while a primitive is traced: they are copies of what is inside.

In Python `a = accounts[i]` is the very object in the list, so a change of `a` is seen in the list. Here the object is
made anew of the columns. What is changed without being stored back is noticed at the end of the primitive, and the ties
between a result and the container that it comes from are known by identity (`aliasing`).
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from contextvars import ContextVar
from typing import Any, NamedTuple, TypeVar

import jax

from pcbatch.containers.container import Container
from pcbatch.containers.object_parts import parts_of
from pcbatch.contexts import setting

C = TypeVar("C")


class Copy(NamedTuple):
    """An object that was read from a container; `inside` are the objects and leaves that it held then."""

    element: Any
    container: Any
    inside: list[Any]


_copies: ContextVar[dict[int, Copy] | None] = ContextVar("pcbatch_copies", default=None)
# By the identity of a container: that container, and one of which it has the elements.
_origins: ContextVar[dict[int, tuple[Any, Any]] | None] = ContextVar("pcbatch_container_origins", default=None)


@contextlib.contextmanager
def noting_copies() -> Iterator[None]:
    """Remember within the context which objects are copies, and which containers have the elements of others."""
    with setting(_copies, {}), setting(_origins, {}):
        yield


def holds_same(new: C, old: Any) -> C:
    """Remember that a new container has the elements of another one; return it."""
    origins = _origins.get()
    if origins is not None and new is not old:
        origins[id(new)] = new, old
    return new


def with_origins(container: Any) -> Iterator[Any]:
    """Yield a container, those of which it has the elements, and those that it is a view of."""
    origins = _origins.get() or {}
    yield container
    if id(container) in origins:
        yield from with_origins(origins[id(container)][1])
    if getattr(container, "parent", None) is not None:
        yield from with_origins(container.parent)


def note_copy(container: Any, element: Any) -> Any:
    """Remember that an element, and the objects that it holds, are copies of what is in a container; return it.

    A list of the lane in it is a view, and no copy.
    """
    return element if isinstance(element, Container) else note_value(container, element)


def note_value(container: Any, element: Any) -> Any:
    """Remember that an element, which may be a list of the lane but no view, is a copy; return it."""
    copies = _copies.get()
    found = None if copies is None else _inside(element)
    if copies is None or found is None:
        return element
    mutable, inside = found
    if mutable:
        copies[id(element)] = Copy(element, container, inside)
    for part in inside:
        note_copy(container, part)
    return element


def _inside(value: Any) -> tuple[bool, list[Any]] | None:
    """Whether an object can be changed, and what it holds; None for an object without parts."""
    return (True, jax.tree.leaves(value)) if isinstance(value, Container) else parts_of(value)


def source_of_copy(value: Any) -> Any:
    """Return the container that an object is a copy from; None if it is none."""
    copies = _copies.get()
    found = None if copies is None else copies.get(id(value))
    return None if found is None else found.container


def forget_copy(value: Any) -> None:
    """Forget that an object is a copy: it is stored back."""
    copies = _copies.get()
    if copies is not None and copies.pop(id(value), None) is not None:
        for part in (_inside(value) or (True, []))[1]:
            forget_copy(part)


def changed_copy() -> Any:
    """Return a copy that is not any more what it was when it was read; None if there is none."""
    for copy in (_copies.get() or {}).values():
        _, now = _inside(copy.element) or (True, [])
        if len(copy.inside) != len(now) or any(a is not b for a, b in zip(copy.inside, now, strict=True)):
            return copy.element
    return None
