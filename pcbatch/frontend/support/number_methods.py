"""Methods and attributes of Python's numbers that arrays of JAX lack, such as `n.bit_length()`."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import jax
import jax.extend.source_info_util
import jax.numpy as jnp

from pcbatch.errors import Refusal
from pcbatch.frontend.support.math_functions import integers, reals
from pcbatch.frontend.support.python_numbers import attribute
from pcbatch.origins import Origin, Tracer, kind_of, number, origin_of

jax.extend.source_info_util.register_exclusion(__file__)

ATTRIBUTES = frozenset({"numerator", "denominator"})
REFUSED = {
    "as_integer_ratio": "its two integers have no bound: write `math.frexp(x)` for a fraction and a power of two",
    "hex": "the value itself is compared and computed with; its text can only be shown",
    "to_bytes": "compute with the number itself: `(n >> 8 * k) & 255` is the byte number `k`",
}


def method(value: Any, name: str) -> Callable[..., Any]:
    """Return the method `value.name`; that of a number of a lane gives a number of Python."""
    kind = kind_of(value.dtype) if isinstance(value, Tracer) and value.shape == () else None
    if kind is None or origin_of(value) is not Origin.NUMBER:
        found: Callable[..., Any] = getattr(value, name)
        return found
    if not hasattr(kind, name):
        raise AttributeError(f"'{kind.__name__}' object has no attribute '{name}'")
    if name in REFUSED:
        raise Refusal("PCB306", f"`{name}` is not there for numbers of a lane", helps=(REFUSED[name],))
    return functools.partial(_METHODS[name], value)


def part(value: Any, name: str) -> Any:
    """Return the attribute `value.numerator` or `value.denominator` of an integer of a lane."""
    if kind_of(value.dtype) not in (bool, int) or value.shape != () or origin_of(value) is not Origin.NUMBER:
        return getattr(value, name)
    whole = attribute(value, "real")
    return whole if name == "numerator" else 1


def _whole(compute: Callable[[Any], Any], n: Any) -> Any:
    with jax.numpy_dtype_promotion("standard"):
        return number(compute(n), n)


def _is_integer(value: Any) -> Any:
    return number(reals.is_integer(value), value) if kind_of(value.dtype) is float else True


def _conjugate(value: Any) -> Any:
    return number(jnp.conj(value), value) if kind_of(value.dtype) is complex else attribute(value, "real")


_METHODS: dict[str, Callable[[Any], Any]] = {
    "bit_length": lambda n: _whole(integers.bit_length, n),
    "bit_count": lambda n: _whole(integers.bit_count, n),
    "is_integer": _is_integer,
    "conjugate": _conjugate,
}
