"""The functions that compiled `match` statements call: the tests of PEP 634, most of them about structure alone."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from pcbatch.containers.container import Container
from pcbatch.containers.lane_list import LaneList
from pcbatch.containers.optional import Optional
from pcbatch.errors import Refusal
from pcbatch.frontend.support.builtins import is_
from pcbatch.frontend.support.type_questions import hasattr_, isinstance_
from pcbatch.origins import number
from pcbatch.records import questions
from pcbatch.records.questions import RECORDS

NUMBERS = (jax.Array, np.ndarray, np.generic, int, float, complex)
WHOLE = (bool, bytearray, bytes, dict, float, frozenset, int, list, set, str, tuple)  # `int(n)` matches n itself


def matched(value: Any, asks_numbers: bool) -> Any:
    """Return the subject of a `match` in a helper that is traced, where Python itself looks at the patterns.

    It cannot tell what records, containers and optional values of a lane are, nor of which type a number is, where a
    pattern asks for that: the helper is compiled along then.
    """
    kinds = (Optional, Container, *RECORDS, *((jax.core.Tracer,) if asks_numbers else ()))
    if any(isinstance(part, kinds) for part in jax.tree.leaves(value, is_leaf=lambda part: isinstance(part, kinds))):
        help = "write the `match` in the batched function itself"
        raise Refusal("PCB305", "a `match` of a value of the lane where the compiler does not see it", helps=(help,))
    return value


def equals(value: Any, pattern: Any) -> Any:
    """The test of a literal pattern, `value == pattern`; a traced value equals only numbers."""
    if isinstance(value, Optional):
        return number(jnp.logical_and(value.present, equals(value.value, pattern)))
    for one, other in ((value, pattern), (pattern, value)):
        if isinstance(one, jax.Array) and not isinstance(other, NUMBERS):
            return False
    return value == pattern


def same(value: Any, pattern: Any) -> Any:
    """The test of a pattern None, True or False, `value is pattern`."""
    if isinstance(value, (Optional, *RECORDS)):
        return is_(value, pattern)
    if isinstance(value, jax.core.Tracer) and isinstance(pattern, bool):
        title = f"the pattern `{pattern}` asks for one Python object, and values of lanes are not objects"
        raise Refusal("PCB305", title, helps=("match `int(c)` with `0` and `1`, or write an `if`",))
    return value is pattern


def is_sequence(value: Any, count: int, more: bool) -> Any:
    """Whether a value is a sequence of `count` elements, or at least as many if `more`."""
    if isinstance(value, RECORDS):
        return questions.is_sequence(value, count, more)
    if isinstance(value, LaneList):
        return number(value.length >= count if more else value.length == count)
    if not isinstance(value, Sequence) or isinstance(value, str | bytes | bytearray):
        return False
    return len(value) >= count if more else len(value) == count


def between(value: Any, start: int, after: int) -> Any:
    """The elements that `*rest` of a sequence pattern binds."""
    if isinstance(value, LaneList):
        return value._plain()[start : value.length - after]
    return list(value[start : len(value) - after])


def has_keys(value: Any, keys: tuple[Any, ...]) -> bool:
    """Whether a value is a mapping with these keys."""
    return isinstance(value, Mapping) and all(key in value for key in keys)


def without(value: Any, keys: tuple[Any, ...]) -> dict[Any, Any]:
    """The items that `**rest` of a mapping pattern binds."""
    return {k: v for k, v in value.items() if k not in keys}


def is_instance(value: Any, cls: Any, count: int) -> Any:
    """Whether a value is of a class; raises TypeError if that has fewer than `count` positional sub-patterns."""
    holds = isinstance_(value, cls)
    if isinstance(holds, bool) and not holds:
        return False
    most = 1 if cls in WHOLE else len(getattr(cls, "__match_args__", ()))
    if count > most:
        plural = "" if most == 1 else "s"
        raise TypeError(f"{cls.__name__}() accepts {most} positional sub-pattern{plural} ({count} given)")
    return holds


def has(value: Any, name: str) -> Any:
    """Whether a value has an attribute."""
    return hasattr_(value, name)


def positional(value: Any, cls: Any, number: int) -> Any:
    """The part of a value that positional sub-pattern `number` of a class pattern is matched with."""
    if cls in WHOLE:
        return value
    name = cls.__match_args__[number]
    return questions.field_of(value, cls, name) if isinstance(value, RECORDS) else getattr(value, name)
