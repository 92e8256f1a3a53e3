"""Operators of objects of the user's classes: a method such as `__mul__` runs as a copy, as other helpers do.

For all other values an operator means what it does in `python_numbers`.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable
from types import FunctionType
from typing import Any

import jax.extend.source_info_util
import jax.numpy as jnp

from pcbatch.containers.members import data_of
from pcbatch.containers.optional import Optional, is_none, narrowed, unwrapped
from pcbatch.containers.own_order import pair
from pcbatch.frontend.support import python_numbers
from pcbatch.frontend.support.helpers import PLAIN
from pcbatch.frontend.support.sequence_operators import are_sequences, compare
from pcbatch.origins import is_noting, number
from pcbatch.records.questions import own_method
from pcbatch.records.reference import Ref

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
        a, b = data_of(a), data_of(b)
        if isinstance(a, Optional) or isinstance(b, Optional):
            return _of_optional(run, plain, a, b)
        if is_comparison and is_noting() and (fields := pair(a, b, plain)) is not None:
            a, b = fields
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


def _of_optional(operator: Callable[[Any, Any], Any], name: str, a: Any, b: Any) -> Any:
    """Apply an operator where an operand may be None, which equals nothing but None and has no other operators."""
    if name not in ("eq", "ne"):
        return operator(unwrapped(a), unwrapped(b))
    if a is None or b is None:
        equal = is_none(b if a is None else a)
    else:
        none_a, none_b = is_none(a), is_none(b)
        alike = operator(narrowed(a), narrowed(b))
        values = alike if name == "eq" else jnp.logical_not(alike)
        equal = jnp.logical_or(jnp.logical_and(none_a, none_b), ~jnp.logical_or(none_a, none_b) & values)
    return number(equal if name == "eq" else jnp.logical_not(equal))


def unary(name: str, substitute: Substitute) -> Callable[[Any], Any]:
    """Return the unary operator `name` of `python_numbers`, for objects too (see `binary`)."""
    operator = getattr(python_numbers, name)

    def run(a: Any) -> Any:
        a = unwrapped(a)
        method = None if isinstance(a, PLAIN) or not is_noting() else _method(a, f"__{name.rstrip('_')}__")
        return operator(a) if method is None else substitute(method)(a)

    return run


def _method(value: Any, name: str) -> FunctionType | None:
    """The method of a value by which Python computes an operator; None if it is not a function of Python."""
    if isinstance(value, PLAIN):
        return None
    if isinstance(value, Ref):
        return own_method(value, name)
    method = inspect.getattr_static(type(value), name, None)
    return method if isinstance(method, FunctionType) else None
