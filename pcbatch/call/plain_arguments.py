"""The arguments of a plain call: those of one example, as the function itself gets them."""

from __future__ import annotations

from types import FunctionType
from typing import Any

import jax
import numpy as np

from pcbatch.call.array_leaves import as_jax
from pcbatch.call.signature import signature
from pcbatch.data.host.host_forms import replaced
from pcbatch.data.host.ragged import enters_lanes
from pcbatch.data.host.ragged_forms import ragged_in
from pcbatch.lowering.typing.pytree import mapped
from pcbatch.lowering.typing.trace import is_key_array


def plain_arguments(
    fn: FunctionType, args: tuple[Any, ...], kwargs: dict[str, Any], changed: frozenset[str]
) -> tuple[tuple[Any, ...], dict[str, Any]]:
    """Return the arguments with arrays that the function can work with.

    Args:
        fn: the function.
        args: the positional arguments of one example.
        kwargs: those by keyword.
        changed: the parameters to whose items the function assigns: they get arrays of NumPy, which are copies.
    """
    if ragged_in((args, kwargs)):
        args, kwargs = replaced((args, kwargs), enters_lanes, lambda lists: lists.tolist())
    names = [*signature(fn).parameters]
    if not changed:
        converted: tuple[tuple[Any, ...], dict[str, Any]] = as_jax((args, kwargs))
        return converted
    positional = tuple(
        _writable(arg) if k < len(names) and names[k] in changed else as_jax(arg) for k, arg in enumerate(args)
    )
    return positional, {name: _writable(x) if name in changed else as_jax(x) for name, x in kwargs.items()}


def _writable(value: Any) -> Any:
    def copied(leaf: Any) -> Any:
        is_one = isinstance(leaf, np.ndarray | jax.Array) and not isinstance(leaf, jax.core.Tracer)
        return np.array(leaf) if is_one and not is_key_array(leaf) else leaf

    return mapped(copied, value)
