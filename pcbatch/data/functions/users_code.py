"""Code of the user's that runs while a primitive is traced: as copies, which see what Python's own code would see."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable
from types import CodeType, FunctionType, ModuleType
from typing import Any

import jax
import jax.extend.source_info_util

from pcbatch.data.functions.python_numbers import ATTRIBUTES, part
from pcbatch.data.object_parts import is_user_code
from pcbatch.data.objects import questions
from pcbatch.data.objects.questions import RECORDS, own_method
from pcbatch.data.objects.reference import Ref, static_attribute
from pcbatch.data.origins import Tracer, is_noting, leaves
from pcbatch.data.sequences.lane_iterator import Asked

jax.extend.source_info_util.register_exclusion(__file__)

LIBRARIES = frozenset({"jax", "jaxlib", "numpy", "pcbatch"})
# Values whose attributes are not properties of the user's, and whose operators are not methods of the user's.
PLAIN = (Tracer, jax.Array, ModuleType, type, FunctionType, int, float, complex, str, list, dict)


_found: list[Callable[[Any], Any]] = []


def package_of(thing: Any) -> str:
    """Return the name of the package in which something is defined; no name if that is not known."""
    return str(getattr(thing, "__module__", "")).split(".")[0]


def substitute(fn: Any) -> Any:
    """Return the callable that stands in for `fn` while a primitive is traced; `fn` itself at any other time."""
    return _found[-1](fn) if _found and is_noting() else fn


def use_stand_ins(found: Callable[[Any], Any]) -> None:
    """Take a function that finds what stands in for a callable: it rewrites sources, which is work of the compiler."""
    _found.append(found)


def see_through(decorator: Callable[..., Any]) -> Callable[..., Any]:
    """Return a decorator that caches as `decorator` does, but not for values of a lane, which are no keys."""
    return lambda fn: without_cache(decorator(fn), fn)


def without_cache(cached: Callable[..., Any], fn: Callable[..., Any]) -> Callable[..., Any]:
    def run(*args: Any, **options: Any) -> Any:
        of_lane = any(isinstance(leaf, Tracer) for leaf in leaves((args, options)))
        return (fn if of_lane else cached)(*args, **options)

    return run


def load_attribute(value: Any, name: str) -> Any:
    """Return `value.name`; while a primitive is traced, the function of a property runs as a copy."""
    if isinstance(value, RECORDS):
        return questions.load_attribute(value, name, substitute)
    if isinstance(value, Tracer) and name in ATTRIBUTES:
        return part(value, name)
    if not is_noting() or isinstance(value, PLAIN) or package_of(type(value)) in LIBRARIES:
        return getattr(value, name)
    match inspect.getattr_static(type(value), name, None):
        case property(fget=FunctionType() as getter):
            return substitute(getter)(value)
        case functools.cached_property(func=FunctionType() as getter) if name not in vars(value):
            return substitute(getter)(value)
    return getattr(value, name)


def users_method(value: Any, name: str) -> Any:
    """The copy of a method of the user's that Python would call itself; None if the class is not the user's."""
    if isinstance(value, Ref):
        method = own_method(value, name)
    else:
        method = inspect.getattr_static(type(value), name, None) if is_noting() else None
        method = method if isinstance(method, FunctionType) and is_user_code(method.__code__) else None
    return None if method is None else substitute(method)


def iterated(value: Any) -> Any:
    """Return the list of what a method `__iter__` of the user's gives; other values as they are."""
    method = users_method(value, "__iter__")
    if method is None:
        return value
    made = method(value)
    if users_method(made, "__next__") is not None:
        raise Asked
    try:
        return list(made)
    except Exception as error:
        raise Asked from error


def ask_for_elements(value: Any) -> None:
    """Have a loop over an object of the user's written out where its body may change what the object yields."""
    if isinstance(value, Ref) and value.pcbatch_id.shape == ():
        iter(value)
    elif users_method(value, "__iter__") is not None and inspect.isgeneratorfunction(type(value).__iter__):
        raise Asked


def users_code(value: Any, name: str) -> CodeType | None:
    """Return the code of a method of the user's; None if the class has none."""
    method = (
        static_attribute(value, name) if isinstance(value, Ref) else inspect.getattr_static(type(value), name, None)
    )
    return method.__code__ if isinstance(method, FunctionType) and is_user_code(method.__code__) else None
