"""Values that a selection has computed while a primitive is traced: in Python each is one of some objects.

`max(a, b)` of two lists is one of them, and a change of the result is one of `a` or of `b`. Here it is a new value that
is made of both; which objects it may be is known by its identity (`aliasing`).
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import AbstractContextManager
from contextvars import ContextVar
from typing import Any, NamedTuple

from pcbatch.containers.container import Container
from pcbatch.containers.object_parts import IMMUTABLE, parts_of
from pcbatch.containers.optional import Optional
from pcbatch.contexts import setting


class Choice(NamedTuple):
    """A value, kept so that its identity is not used again, and the objects of which it is one in Python.

    Values of one `group`, such as the elements of a sorted list, are never one object.
    """

    made: Any
    objects: tuple[Any, ...]
    group: object


_choices: ContextVar[dict[int, Choice] | None] = ContextVar("pcbatch_choices", default=None)


def noting_choices() -> AbstractContextManager[None]:
    """Remember within the context of which objects those are that are made by `one_of`."""
    return setting(_choices, {})


def one_of(made: Any, objects: Sequence[Any], group: object = None) -> Any:
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


def _part(value: Any, k: int, count: int) -> Any:
    found = parts_of(value)
    return value if found is None or len(found[1]) != count else found[1][k]


def choice_of(value: Any) -> Choice | None:
    """Return of which objects a value is one; None for a value that no selection has made."""
    return (_choices.get() or {}).get(id(value))
