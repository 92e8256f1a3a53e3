"""The inputs of one lane as text, for messages about it."""

from __future__ import annotations

from typing import Any

import jax
import numpy as np

from pcbatch.call.arguments import Arguments
from pcbatch.data.host.host_forms import container_leaves, in_host_form
from pcbatch.lowering.typing.abstract_values import Known, leaf_names
from pcbatch.lowering.typing.trace import is_key_array

SHOWN_VALUES = 4  # elements of an argument that is an array
SHOWN_TEXT = 40  # characters of an argument that is a list


def describe_lane(lane: int, given: Arguments, more: str = "") -> str:
    """The number of a lane with its scalar and small inputs, such as `3 (n=-1, x[0]=2.5)`. `more` comes after them."""
    values = []
    for param, type_ in given.types.items():
        if param in given.shared:
            continue
        if any(container_leaves(jax.tree.unflatten(type_.tree, list(range(len(type_.leaves)))))):
            shown = _lists(given, param, lane)
            values += [] if shown is None else [f"{param}={shown}"]
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


def _lists(given: Arguments, param: str, lane: int) -> str | None:
    """An argument of a lane that holds lists, as text; None if it is long, or not to be had."""
    type_, arrays = given.types[param], given.arrays[param]
    if len(arrays) < len(type_.leaves) or not all(given.mapped[param]) or any(map(_is_gone, arrays)):
        return None
    rows = [np.asarray(jax.lax.stop_gradient(array))[lane : lane + 1] for array in arrays]
    value = in_host_form(jax.tree.unflatten(type_.tree, rows))
    text = repr(jax.tree.map(lambda x: x.tolist()[0], value, is_leaf=lambda x: hasattr(x, "tolist")))
    return text if len(text) <= SHOWN_TEXT else None


def _is_gone(array: Any) -> bool:
    donated = isinstance(array, jax.Array) and not isinstance(array, jax.core.Tracer) and array.is_deleted()
    return donated or is_key_array(array) or isinstance(array, jax.ShapeDtypeStruct)


def _value(array: Any, lane: int) -> str | None:
    """The value of a lane as text; None if it is large, or not to be had."""
    if _is_gone(array):
        return None
    # While JAX differentiates, the argument is a tracer whose value is known.
    value = np.asarray(jax.lax.stop_gradient(array))[lane]
    return str(value) if value.size <= SHOWN_VALUES and value.ndim < 2 else None
