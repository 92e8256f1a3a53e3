"""The parts of Python's objects, and whether an object can be changed."""

from __future__ import annotations

import dataclasses
from typing import Any

import jax
import numpy as np

from pcbatch.containers.optional import Optional

IMMUTABLE = (bool, int, float, complex, str, bytes, type, range, slice, jax.Array, np.generic, np.dtype)
"""Types without mutable parts; which arrays of JAX are views of others is found in the jaxpr."""


def parts_of(value: Any) -> tuple[bool, list[Any]] | None:
    """Return whether an object can be changed, and what it holds; None for an object without parts."""
    if isinstance(value, Optional):
        return False, [value.value]
    if isinstance(value, np.ndarray):
        return True, [value.base] if isinstance(value.base, np.ndarray) else []
    if isinstance(value, dict):
        return True, list(value.values())
    if isinstance(value, tuple | frozenset):
        return False, list(value)
    if isinstance(value, list | set):
        return True, list(value)
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        fields = [getattr(value, field.name, None) for field in dataclasses.fields(value)]
        return not type(value).__dataclass_params__.frozen, fields  # type: ignore[attr-defined]
    if hasattr(value, "__dict__") and not callable(value):
        return True, list(vars(value).values())
    return None
