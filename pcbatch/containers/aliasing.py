"""The mutable objects that a value holds: two values that hold one and the same may not both go on after a change."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator
from typing import Any

import jax
import numpy as np

from pcbatch.containers.container import Container

IMMUTABLE = (bool, int, float, complex, str, bytes, type, jax.Array, np.ndarray, np.generic, np.dtype)
"""Types without mutable parts; which arrays are views of others is found in the jaxpr."""


def may_share(a: Any, b: Any) -> bool:
    """Return whether two values hold one and the same mutable object.

    Args:
        a, b: the result of a primitive and one of its arguments, as objects of Python, while it is traced.
    """
    return not {id(part) for part in mutable_parts(a)}.isdisjoint(id(part) for part in mutable_parts(b))


def mutable_parts(value: Any) -> Iterator[Any]:
    """Yield the mutable objects that a value holds, itself included; objects of unknown classes count as mutable."""
    if value is None or isinstance(value, IMMUTABLE):
        return
    if isinstance(value, Container):
        part: Container | None = value
        while part is not None:
            yield part
            for element in part.held:
                yield from mutable_parts(element)
            part = part.parent
        return
    if isinstance(value, dict):
        yield value
        parts: Any = value.values()
    elif isinstance(value, tuple | list | set | frozenset):
        if not isinstance(value, tuple | frozenset):
            yield value
        parts = value
    elif dataclasses.is_dataclass(value) and not isinstance(value, type):
        if not type(value).__dataclass_params__.frozen:  # type: ignore[attr-defined]
            yield value
        parts = [getattr(value, field.name, None) for field in dataclasses.fields(value)]
    elif hasattr(value, "__dict__") and not callable(value):
        yield value
        parts = vars(value).values()
    else:
        return
    for part in parts:
        yield from mutable_parts(part)
