"""Arrays for parameters that are annotated as lists: each lane gets a list of its own, as from `pcbatch.ragged`.

def quicksort(xs: list[int]) -> list[int]: ...
pcbatch.batch(quicksort)(jnp.array([[3, 1, 2], [9, 8, 7]]))
"""

from __future__ import annotations

import ast
import inspect
from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from pcbatch.containers.ragged import Ragged

LISTS = frozenset({"list", "List", "MutableSequence"})


def as_annotated(fn: Callable[..., Any], name: str, value: Any, axis: Any) -> Any:
    """Return an argument as lists of lanes, if its parameter is annotated as a list and it is an array that fits.

    Args:
        fn: the plain function.
        name: the parameter.
        value: the argument, of all lanes.
        axis: its entry of `in_axes`.
    """
    if not isinstance(value, jax.Array | np.ndarray) or axis != 0 or isinstance(axis, bool):
        return value
    depth = _depth(getattr(fn, "__annotations__", {}).get(name))
    if not depth or value.ndim != 1 + depth:
        return value
    return _lists(value, depth)


def _lists(value: Any, depth: int) -> Ragged:
    """The array as a `Ragged` of `depth` levels, in which all lists of one level are equally long."""
    made: Any = value
    for level in range(depth, 0, -1):
        lengths = jnp.full(value.shape[:level], value.shape[level], jnp.int32)
        made = Ragged(made, lengths)
    result: Ragged = made
    return result


def _depth(annotation: Any) -> int:
    """The number of lists around each other in an annotation; 0 if it is none of a list."""
    if annotation is None:
        return 0
    text = annotation if isinstance(annotation, str) else inspect.formatannotation(annotation)
    try:
        node: Any = ast.parse(text, mode="eval").body
    except SyntaxError:
        return 0
    depth = 0
    while True:
        base = node.value if isinstance(node, ast.Subscript) else node
        name = base.attr if isinstance(base, ast.Attribute) else getattr(base, "id", None)
        if name not in LISTS:
            return depth
        depth += 1
        if not isinstance(node, ast.Subscript):
            return depth
        node = node.slice
