"""What compiled `match` statements call: the tests of PEP 634, most of them about structure alone."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import jax
import numpy as np

from pcbatch.errors import Refusal
from pcbatch.frontend.support.type_questions import hasattr_, isinstance_

NUMBERS = (jax.Array, np.ndarray, np.generic, int, float, complex)
WHOLE = (bool, bytearray, bytes, dict, float, frozenset, int, list, set, str, tuple)  # `int(n)` matches n itself


def equals(value: Any, pattern: Any) -> Any:
    """`value == pattern`; a traced value equals only numbers."""
    for one, other in ((value, pattern), (pattern, value)):
        if isinstance(one, jax.Array) and not isinstance(other, NUMBERS):
            return False
    return value == pattern


def same(value: Any, pattern: Any) -> Any:
    """`value is pattern`, for None, True and False."""
    if isinstance(value, jax.core.Tracer) and isinstance(pattern, bool):
        title = f"the pattern `{pattern}` asks for one Python object, and values of lanes are not objects"
        raise Refusal("PCB305", title, helps=("match `int(c)` with `0` and `1`, or write an `if`",))
    return value is pattern


def is_sequence(value: Any, count: int, more: bool) -> bool:
    """Does a sequence pattern of so many elements (or more) fit?"""
    if not isinstance(value, Sequence) or isinstance(value, str | bytes | bytearray):
        return False
    return len(value) >= count if more else len(value) == count


def between(value: Any, start: int, after: int) -> list[Any]:
    """What `*rest` of a sequence pattern gets."""
    return list(value[start : len(value) - after])


def has_keys(value: Any, keys: tuple[Any, ...]) -> bool:
    """Does a mapping pattern fit?"""
    return isinstance(value, Mapping) and all(key in value for key in keys)


def without(value: Any, keys: tuple[Any, ...]) -> dict[Any, Any]:
    """What `**rest` of a mapping pattern gets."""
    return {k: v for k, v in value.items() if k not in keys}


def is_instance(value: Any, cls: Any, given: int) -> bool:
    """Is the value of this class, which has so many positional sub-patterns?"""
    if not isinstance_(value, cls):
        return False
    most = 1 if cls in WHOLE else len(getattr(cls, "__match_args__", ()))
    if given > most:
        plural = "" if most == 1 else "s"
        raise TypeError(f"{cls.__name__}() accepts {most} positional sub-pattern{plural} ({given} given)")
    return True


def has(value: Any, name: str) -> bool:
    """Does the value have this attribute?"""
    return hasattr_(value, name)


def positional(value: Any, cls: Any, number: int) -> Any:
    """What a positional sub-pattern of a class pattern is matched with."""
    if cls in WHOLE:
        return value
    return getattr(value, cls.__match_args__[number])
