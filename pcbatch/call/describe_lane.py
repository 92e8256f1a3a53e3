"""The inputs of one lane as text, for messages about it."""

from __future__ import annotations

from typing import Any

import jax
import numpy as np

from pcbatch.call.arguments import Arguments
from pcbatch.lowering.typing.abstract_values import Known, leaf_names
from pcbatch.lowering.typing.trace import is_key_array

SHOWN_VALUES = 4  # elements of an argument that is an array


def describe_lane(lane: int, given: Arguments, more: str = "") -> str:
    """The number of a lane with its scalar and small inputs, such as `3 (n=-1, x[0]=2.5)`. `more` comes after them."""
    values = []
    for param, type_ in given.types.items():
        if param in given.shared:
            continue
        names = leaf_names(param, type_)
        names_of_arrays = [name for name, leaf in zip(names, type_.leaves, strict=True) if not isinstance(leaf, Known)]
        leaves = zip(names_of_arrays, given.arrays[param], given.mapped[param], strict=True)
        for name, array, mapped in leaves:
            value = _value(array, lane) if mapped else None
            if value is not None:
                values.append(f"{name}={value}")
    inside = ", ".join(values) + more
    return f"{lane} ({inside.removeprefix(', ')})" if inside else str(lane)


def _value(array: Any, lane: int) -> str | None:
    """The value of a lane as text; None if it is large, or not to be had."""
    donated = isinstance(array, jax.Array) and not isinstance(array, jax.core.Tracer) and array.is_deleted()
    if donated or is_key_array(array) or isinstance(array, jax.ShapeDtypeStruct):
        return None
    # While JAX differentiates, the argument is a tracer whose value is known.
    value = np.asarray(jax.lax.stop_gradient(array))[lane]
    return str(value) if value.size <= SHOWN_VALUES and value.ndim < 2 else None
