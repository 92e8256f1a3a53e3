"""Operators of objects of the user's classes: a method such as `__mul__` runs as a copy, as other helpers do.

For all other values an operator means what it does in `python_numbers`.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable
from types import FunctionType
from typing import Any

import jax.extend.source_info_util

from pcbatch.frontend.support import python_numbers
from pcbatch.frontend.support.helpers import PLAIN
from pcbatch.frontend.support.sequence_operators import are_sequences, compare
from pcbatch.origins import is_noting

jax.extend.source_info_util.register_exclusion(__file__)

Substitute = Callable[[Any], Callable[..., Any]]
REFLECTED = {"lt": "gt", "le": "ge", "gt": "lt", "ge": "le", "eq": "eq", "ne": "ne"}


def binary(name: str, substitute: Substitute) -> Callable[[Any, Any], Any]:
    """Return the binary operator `name` of `python_numbers`, for objects too.

    `substitute` returns the copy of a method.
    """
    operator = getattr(python_numbers, name)
    plain = {"power": "pow", "checked_power": "pow"}.get(name, name.rstrip("_"))
    dunder, reflected = f"__{plain}__", f"__{REFLECTED.get(plain, f'r{plain}')}__"

    is_comparison = plain in REFLECTED

    def run(a: Any, b: Any) -> Any:
        if is_comparison and are_sequences(a, b):
            return compare(plain, a, b)
        if (isinstance(a, PLAIN) and isinstance(b, PLAIN)) or not is_noting():
            return operator(a, b)
        own, other = _method(a, dunder), _method(b, reflected)
        if (not isinstance(b, PLAIN) and hasattr(type(b), "__jax_array__")) or (
            own is None and not isinstance(a, PLAIN)
        ):
            return operator(a, b)  # a method that is not the user's
        calls = [(own, a, b), (other, b, a)]
        if type(b) is not type(a) and isinstance(b, type(a)):  # Python asks a subclass first
            calls.reverse()
        for method, value, operand in calls:
            if method is not None and (result := substitute(method)(value, operand)) is not NotImplemented:
                return result
        return operator(a, b)

    return run


def unary(name: str, substitute: Substitute) -> Callable[[Any], Any]:
    """Return the unary operator `name` of `python_numbers`, for objects too (see `binary`)."""
    operator = getattr(python_numbers, name)

    def run(a: Any) -> Any:
        method = None if isinstance(a, PLAIN) or not is_noting() else _method(a, f"__{name.rstrip('_')}__")
        return operator(a) if method is None else substitute(method)(a)

    return run


def _method(value: Any, name: str) -> FunctionType | None:
    """The method of a value by which Python computes an operator; None if it is not a function of Python."""
    if isinstance(value, PLAIN):
        return None
    method = inspect.getattr_static(type(value), name, None)
    return method if isinstance(method, FunctionType) else None
