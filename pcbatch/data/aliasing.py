"""The mutable objects that a value holds: two values that hold one and the same may not both go on after a change.

A value has two levels: the object that it is itself, its *own*, and the objects inside, its *inner* ones. A change of
an inner object is not one of the object around it.

In Python `max(a, b)` of two lists is one of them, and a change of the result is one of `a` or of `b`. Here it is a new
value that is made of both: a `Choice` says which objects it may be.

In Python `a = accounts[i]` is the very object in the list, so a change of `a` is seen in the list. Here it is a copy,
made anew of the columns. What is changed without being stored back is noticed at the end of the primitive; the identity
of copies ties a result to its container.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager
from contextvars import ContextVar
from itertools import product
from types import CodeType, FunctionType
from typing import Any, NamedTuple, TypeVar

import jax

from pcbatch.contexts import setting
from pcbatch.data.container import Container
from pcbatch.data.object_parts import IMMUTABLE, parts_of
from pcbatch.data.optional import Optional
from pcbatch.data.values import Value


class Choice(NamedTuple):
    """A value, kept so that its identity is not used again, and the objects of which it is one in Python.

    Values of one `group`, such as the elements of a sorted list, are never one object.
    """

    made: Value
    objects: tuple[Value, ...]
    group: object


_choices: ContextVar[dict[int, Choice] | None] = ContextVar("pcbatch_choices", default=None)


def noting_choices() -> AbstractContextManager[None]:
    """Remember within the context of which objects those are that are made by `one_of`."""
    return setting(_choices, {})


def one_of(made: Value, objects: Sequence[Value], group: object = None) -> Value:
    """Note that a value that was computed by a selection is one of these objects in Python; return the value."""
    choices = _choices.get()
    if choices is None or made is None or isinstance(made, IMMUTABLE):
        return made
    objects = [each for each in objects if each is not made]  # it is itself, whatever else it may be
    if not objects:
        return made
    choices[id(made)] = Choice(made, tuple(objects), object() if group is None else group)
    found = parts_of(made)
    if found is not None and not isinstance(made, Container | Optional):
        for k, part in enumerate(found[1]):
            one_of(part, [_part(each, k, len(found[1])) for each in objects], group)
    return made


def _part(value: Value, k: int, count: int) -> Value:
    found = parts_of(value)
    return value if found is None or len(found[1]) != count else found[1][k]


def choice_of(value: Value) -> Choice | None:
    """Return of which objects a value is one; None for a value that no selection has made."""
    return (_choices.get() or {}).get(id(value))


CAPTURED = -1
"""In place of the number of an input: an object that existed before, such as a global list."""

MOST = 10_000  # parts of a captured object that are looked at

Key = tuple[str, int]  # a kind of tie and the identity of an object


def of_result(number: int) -> int:
    """Return what stands for a result of a primitive in place of the number of an input; its own inverse."""
    return CAPTURED - 1 - number


class Alias(NamedTuple):
    """A result and an input of a primitive that may hold one and the same mutable object, at the levels given."""

    result: int
    source: int
    own_result: bool
    own_source: bool


class Parts:
    """The mutable objects of a value, by keys; `repeated` tells whether one object stands at several places in it."""

    def __init__(self, value: Value, expanded: frozenset[int] = frozenset()) -> None:
        self._expanded = expanded  # the containers whose elements are looked at, which hold views of themselves
        self.own: set[Key] = set()
        self.inner: set[Key] = set()
        self._repeated = False
        self._sources: set[int] = set()  # the containers of which objects that can be changed are copies
        self._containers: set[int] = set()  # those that the value holds, and of which these have the elements
        self._seen: set[int] = set()
        self._kept: list[Any] = []  # so that no identity is used again
        self._views: dict[int, Container] = {}  # one view of each container that there are views of
        self._groups: dict[Key, object] = {}  # which choice an object was found in
        self._add(value, self.own)

    @property
    def repeated(self) -> bool:
        return self._repeated or not self._sources.isdisjoint(self._containers)

    def at(self, own: bool) -> set[Key]:
        """Return the keys of one level."""
        return self.own if own else self.inner

    def _add(self, value: Value, level: set[Key]) -> None:
        if value is None or isinstance(value, IMMUTABLE) or len(self._seen) > MOST:
            return
        if (choice := choice_of(value)) is not None:
            self._add_choice(choice, level)
        if isinstance(value, Optional):
            self._add(value.value, level)
            return
        if isinstance(value, Container):
            self._add_container(value, level)
            return
        children = parts_of(value)
        if children is None:
            return
        mutable, inside = children
        if id(value) in self._seen:
            self._repeated |= mutable or holds_objects(inside)
            return
        self._seen.add(id(value))
        self._kept.append(value)
        if mutable:
            level.add(("object", id(value)))
        self.inner.add(("inside", id(value)))
        self._add_source(value, level)
        for part in inside:
            self._add(part, self.inner)

    def _add_choice(self, choice: Choice, level: set[Key]) -> None:
        """Add the objects of which a value is one."""
        for each in choice.objects:
            parts = Parts(each)
            self._kept.append(parts)
            self._sources |= parts._sources
            self._containers |= parts._containers
            for key in parts.own:
                self._repeated |= self._groups.setdefault(key, choice.group) is not choice.group
            level |= parts.own
            self.inner |= parts.inner

    def _add_container(self, value: Container, level: set[Key]) -> None:
        """Add a container of the lane. Its elements have no identities: all of them count as one object."""
        self._kept.append(value)
        level.add(("object", id(value)))
        if value.snapshot is not None:
            level.add(("object", id(value.snapshot)))
        self._add_source(value, level)
        self._containers.update(map(id, with_origins(value)))
        self.inner.update(("inside", id(one)) for one in with_origins(value))
        for element in value.held:
            self._add(element, self.inner)
        parent = value.parent
        while parent is not None:
            self._add_held(parent, level)
            if (
                level is self.inner
                and parent is value.parent
                and self._views.setdefault(id(parent), value) is not value
            ):
                self._repeated = True
            keys = {("inside", id(one)) for one in with_origins(parent)}
            level |= keys
            self.inner |= keys
            parent = parent.parent

    def _add_source(self, value: Value, level: set[Key]) -> None:
        """Add the container that an object is a copy from, and what has become an element of it: the copy may stand for
        any of these objects."""
        if (source := source_of_copy(value)) is None:
            return
        self._kept.append(source)
        self._sources.update(map(id, with_origins(source)))
        for one in with_origins(source):
            level.add(("inside", id(one)))
            if isinstance(one, Container):
                self._add_held(one, level)

    def _add_held(self, parent: Container, level: set[Key]) -> None:
        """Add what has become an element of a container, for a view of it: the view may be any of these objects, or
        one inside them."""
        for element in parent.held if id(parent) not in self._expanded else ():
            parts = Parts(element, self._expanded | {id(parent)})
            self._kept.append(parts)
            for keys in (level, self.inner):
                keys |= parts.own | parts.inner


def holds_objects(value: Value) -> bool:
    """Return whether a value holds an object that can be changed, below the value itself."""
    return any(kind == "object" for kind, _ in Parts(value).inner)


def aliases(results: list[Value], inputs: list[Value], fn: Callable[..., Value]) -> Iterator[Alias]:
    """Yield the ties between the results and the arguments of a primitive, while it is traced.

    Args:
        results: the objects that the primitive gives.
        inputs: its arguments, as objects of Python.
        fn: the function of the primitive, for the objects that it has captured.
    """
    given = [Parts(value) for value in inputs]
    known, made = set[Key]().union(*(parts.own | parts.inner for parts in given)), list[Parts]()
    for k, result in enumerate(results):
        made.append(parts := Parts(result))
        if not parts.own and not parts.inner:
            continue
        for j, other in enumerate(made[:-1]):
            for own_result, own_source in product((True, False), repeat=2):
                shared = (parts.at(own_result) & other.at(own_source)) - known  # those of inputs are ties to these
                if any(kind == "object" or own_result is not own_source for kind, _ in shared):
                    yield Alias(k, of_result(j), own_result, own_source)
        for j, other in enumerate(given):
            for own_result, mine in ((True, parts.own), (False, parts.inner)):
                for own_source, theirs in ((True, other.own), (False, other.inner)):
                    if not mine.isdisjoint(theirs):
                        yield Alias(k, j, own_result, own_source)
        outside = captured(fn)
        if not parts.own.isdisjoint(outside):
            yield Alias(k, CAPTURED, True, True)
        if not parts.inner.isdisjoint(outside):
            yield Alias(k, CAPTURED, False, True)


def captured(fn: Callable[..., Value]) -> set[Key]:
    """Return the mutable objects that a function finds in its globals, its cells and its defaults."""
    keys: set[Key] = set()
    for value in _with_defaults(captured_values(fn)):
        if not isinstance(value, type) and not callable(value) and type(value).__name__ != "module":
            parts = Parts(value)
            keys |= parts.own | parts.inner
    return keys


def _with_defaults(values: list[Value]) -> Iterator[Value]:
    """Yield captured values, and the default arguments of functions among them, which are objects as old."""
    for value in values:
        yield value
        if isinstance(value, FunctionType):
            yield from (*(value.__defaults__ or ()), *(value.__kwdefaults__ or {}).values())


def captured_values(fn: Callable[..., Value]) -> list[Value]:
    """Return what a function finds in its globals and its cells."""
    code = getattr(fn, "__code__", None)
    if code is None:
        return []
    return [*(fn.__globals__[name] for name in _names(code) if name in fn.__globals__), *cells_of(fn)]


def cells_of(fn: Callable[..., Value]) -> list[Value]:
    """Return what a function finds in its cells."""
    found = []
    for cell in getattr(fn, "__closure__", None) or ():
        try:
            found.append(cell.cell_contents)
        except ValueError:  # not bound yet
            continue
    return found


def _names(code: CodeType) -> Iterator[str]:
    yield from code.co_names
    for constant in code.co_consts:
        if isinstance(constant, CodeType):
            yield from _names(constant)


C = TypeVar("C")


class Copy(NamedTuple):
    """An object that was read from a container; `inside` are the objects and leaves that it held then."""

    element: Value
    container: Value
    inside: list[Value]


_copies: ContextVar[dict[int, Copy] | None] = ContextVar("pcbatch_copies", default=None)
# By the identity of a container: that container, and one of which it has the elements.
_origins: ContextVar[dict[int, tuple[Any, Any]] | None] = ContextVar("pcbatch_container_origins", default=None)
# The structures of the objects that have been changed in place, before that.
_changed: ContextVar[list[Any] | None] = ContextVar("pcbatch_changed_objects", default=None)


@contextlib.contextmanager
def noting_copies() -> Iterator[list[Any]]:
    """Remember which objects are copies, and which containers hold elements of others; give what changes, before."""
    with setting(_copies, {}), setting(_origins, {}), setting(_changed, found := list[Any]()):
        yield found


def note_changing(value: Value) -> Value:
    """Remember the structure of an object that a statement changes in place next; return the object."""
    changed = _changed.get()
    if changed is not None:
        changed.append(jax.tree.structure(value))
    return value


def holds_same(new: C, old: Value) -> C:
    """Remember that a new container has the elements of another one; return it."""
    origins = _origins.get()
    if origins is not None and new is not old:
        origins[id(new)] = new, old
    return new


def with_origins(container: Value) -> Iterator[Value]:
    """Yield a container, those of which it has the elements, and those that it is a view of."""
    origins = _origins.get() or {}
    yield container
    if id(container) in origins:
        yield from with_origins(origins[id(container)][1])
    if getattr(container, "parent", None) is not None:
        yield from with_origins(container.parent)


def note_copy(container: Value, element: Value) -> Value:
    """Remember that an element, and the objects that it holds, are copies of what is in a container; return it.

    A list of the lane in it is a view, and no copy.
    """
    return element if isinstance(element, Container) else note_value(container, element)


def note_value(container: Value, element: Value) -> Value:
    """Remember that an element, which may be a list of the lane but no view, is a copy; return it."""
    copies = _copies.get()
    found = None if copies is None else _inside(element)
    if copies is None or found is None:
        return element
    mutable, inside = found
    if mutable and (not isinstance(container, Somewhere) or id(element) not in copies):
        copies[id(element)] = Copy(element, container, inside)
    for part in inside:
        note_copy(container, part)
    return element


class Somewhere:
    """A container of which nothing need be known; an object that is a copy from another one stays that."""


def note_stored(value: Value) -> None:
    """Remember an object that has become a part of a container or a record: a change of it would be seen there."""
    note_value(Somewhere(), value)  # the container has it by now: nothing else is tied by this


def _inside(value: Value) -> tuple[bool, list[Value]] | None:
    """Whether an object can be changed, and what it holds; None for an object without parts."""
    if isinstance(value, Container):  # a view is what it is a view of: its own leaves are made whenever they are asked
        return True, jax.tree.leaves(getattr(value, "_node", value))
    return parts_of(value)


def source_of_copy(value: Value) -> Value:
    """Return the container that an object is a copy from; None if it is none."""
    copies = _copies.get()
    found = None if copies is None else copies.get(id(value))
    return None if found is None else found.container


def forget_copy(value: Value) -> None:
    """Forget that an object is a copy: it is stored back."""
    copies, found = _copies.get(), _inside(value)
    if copies is not None and found is not None and (copies.pop(id(value), None) is not None or not found[0]):
        for part in found[1]:  # of what cannot be changed the parts alone are copies
            forget_copy(part)


def changed_copy() -> Value:
    """Return a copy that is not any more what it was when it was read; None if there is none."""
    for copy in (_copies.get() or {}).values():
        _, now = _inside(copy.element) or (True, [])
        if len(copy.inside) != len(now) or any(a is not b for a, b in zip(copy.inside, now, strict=True)):
            return copy.element
    return None
