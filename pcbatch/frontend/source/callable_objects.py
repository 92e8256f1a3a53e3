"""The plain functions behind objects that can be called: methods, partials, caches and objects with `__call__`."""

from __future__ import annotations

import functools
import inspect
from types import FunctionType, MethodType
from typing import Any

CACHE = type(functools.lru_cache(lambda: None))


def callee_of(obj: object) -> tuple[FunctionType | None, tuple[object, ...], tuple[tuple[str, object], ...]]:
    """The plain function that a call of `obj` runs, or a read of a property, with arguments that are bound to it; None
    for other callables.

    A cache around a function is seen through: its values are those of the function.
    """
    match obj:
        case FunctionType():
            return obj, (), ()
        case MethodType(__func__=inner):
            fn, args, keywords = callee_of(inner)
            return fn, (*args, obj.__self__), keywords
        case staticmethod(__func__=inner) | property(fget=inner):
            return callee_of(inner)
        case functools.partial():
            fn, args, keywords = callee_of(obj.func)
            return fn, (*args, *obj.args), tuple({**dict(keywords), **obj.keywords}.items())
        case CACHE():
            return callee_of(obj.__wrapped__)
    call = None if isinstance(obj, type) else inspect.getattr_static(type(obj), "__call__", None)
    return (call, (obj,), ()) if isinstance(call, FunctionType) else (None, (), ())


def is_cached(obj: object) -> bool:
    """Return whether a cache of Python's is around what a call of an object runs."""
    match obj:
        case MethodType(__func__=inner) | staticmethod(__func__=inner) | functools.partial(func=inner):
            return is_cached(inner)
        case _:
            return isinstance(obj, CACHE)


def bound_function(base: object, name: str) -> Any:
    """The bound method `base.name` if it is a plain function of the user's class; None for anything else."""
    if isinstance(base, type) or name in getattr(base, "__dict__", ()):
        return None
    value = inspect.getattr_static(type(base), name, None)
    if isinstance(value, FunctionType) or isinstance(value, CACHE):
        return MethodType(value, base)
    return None
