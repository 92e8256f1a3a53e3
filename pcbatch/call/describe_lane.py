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
    """The number of a lane, with its scalar and small inputs."""
    values = []
    for param, type_ in given.types.items():
        if param in given.shared:
            continue
        names = leaf_names(param, type_)
        held = [name for name, leaf in zip(names, type_.leaves, strict=True) if not isinstance(leaf, Known)]
        leaves = zip(held, given.arrays[param], given.mapped[param], strict=True)
        for leaf, array, mapped in leaves:
            value = _value(array, lane) if mapped else None
            if value is not None:
                values.append(f"{leaf}={value}")
    inside = ", ".join(values) + more
    return f"{lane} ({inside.removeprefix(', ')})" if inside else str(lane)


def _value(array: Any, lane: int) -> str | None:
    gone = isinstance(array, jax.Array) and not isinstance(array, jax.core.Tracer) and array.is_deleted()  # given away
    if gone or is_key_array(array) or isinstance(array, jax.ShapeDtypeStruct):
        return None
    # While JAX differentiates, what lanes hold is known, but the argument is not an array.
    value = np.asarray(jax.lax.stop_gradient(array))[lane]
    return str(value) if value.size <= SHOWN_VALUES and value.ndim < 2 else None
