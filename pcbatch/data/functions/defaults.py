"""Default arguments that can be changed: Python makes each once, and all calls of the function share it.

    def visit(node, seen=[]):
        seen.append(node)      # refused: the second call would find what the first one has left

A traced function has its defaults anew in each primitive, so what one call leaves in them would be lost.
"""

from __future__ import annotations

import functools
from collections import deque
from collections.abc import Callable
from types import FunctionType
from typing import Any, cast

import jax

from pcbatch.data.aliasing import Parts
from pcbatch.data.container import Container
from pcbatch.errors import Refusal

KEPT = (list, dict, set, deque, Container)  # types of default arguments that a call may change
HELP = "let the default be None, and make the object in the function"


def defaults_of(fn: Callable[..., Any]) -> list[Any]:
    """Return the default arguments of a function that can be changed."""
    values = (*(getattr(fn, "__defaults__", None) or ()), *(getattr(fn, "__kwdefaults__", None) or {}).values())
    return [value for value in values if isinstance(value, KEPT)]


def same_defaults(fn: FunctionType, made_here: bool = False) -> FunctionType:
    """Return a function that refuses a change of its default arguments; the function itself if it has none to change.

    Args:
        fn: the function.
        made_here: whether the defaults are made where the function is traced, so that a result that holds one of them
            has no tie to what the next call finds. Such a result is refused as well.
    """
    kept = defaults_of(fn)
    if not kept:
        return fn

    def call(*args: Any, **options: Any) -> Any:
        before = [(value, value.copy()) for value in kept]
        result = fn(*args, **options)
        for value, old in before:
            if not _alike(_parts(value), _parts(old)):
                if not isinstance(value, Container):
                    value.clear()
                    (value.extend if isinstance(value, list | deque) else value.update)(old)
                title = f"`{fn.__name__}` changes a default argument, which all its calls share"
                raise Refusal("PCB330", title, helps=(HELP,))
        if made_here:
            held = Parts(result)
            if any(("object", id(value)) in held.own | held.inner for value in kept):
                title = f"`{fn.__name__}` gives a default argument away, which all its calls share"
                raise Refusal("PCB330", title, helps=(HELP,))
        return result

    functools.update_wrapper(call, fn)
    return cast(FunctionType, call)


def own_defaults(fn: FunctionType) -> FunctionType:
    """Decorate a nested function, whose default arguments are made where it is traced."""
    return same_defaults(fn, made_here=True)


def _alike(new: list[Any], old: list[Any]) -> bool:
    return len(new) == len(old) and all(a is b for a, b in zip(new, old, strict=True))


def _parts(value: Any) -> list[Any]:
    if isinstance(value, Container):
        return jax.tree.leaves(value)
    return [part for pair in value.items() for part in pair] if isinstance(value, dict) else list(value)
