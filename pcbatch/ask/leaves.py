"""The leaves of requests, as they are when they are asked with: host code may use its arrays and lists again."""

from __future__ import annotations

from collections.abc import Hashable
from functools import cache
from typing import Any

import jax
import numpy as np

from pcbatch.ask.answers import Part
from pcbatch.ask.arena import Row
from pcbatch.call.array_leaves import check_leaf
from pcbatch.call.usage import usage
from pcbatch.data.host.host_forms import replaced
from pcbatch.errors import UsageError
from pcbatch.lowering.typing.abstract_values import Known
from pcbatch.lowering.typing.pytree import flatten


def leaves_of(value: Any) -> tuple[list[Any], Any]:
    """Return the leaves and the structure of an argument; a row, a text, or a list of numbers and texts is one."""
    parts, tree = flatten(replaced(value, is_one, Part))
    return [part.value if isinstance(part, Part) else part for part in parts], tree


def is_one(value: Any) -> bool:
    """Return whether a value is one leaf of a request, though it is none, or no array, for JAX."""
    return isinstance(value, Row | bytes) or (isinstance(value, list) and _is_plain(value))


def _is_plain(value: Any) -> bool:
    if isinstance(value, list | tuple):
        return all(map(_is_plain, value))
    return isinstance(value, bool | int | float | complex | str | bytes | np.generic)


def shared_leaf(name: str, leaf: Any) -> Any:
    """Return a shared leaf, a copy of what may be changed in place."""
    if isinstance(leaf, Row):
        help = "ask with `row.value()`, or leave out the None in its place in `in_axes`"
        raise usage("PCB404", f"argument `{name}` is shared, and is a row on the device", help=help)
    return own_leaf(name, leaf) if isinstance(leaf, np.ndarray | list | jax.Array) else leaf


def told(leaf: Any) -> Hashable:
    """Return what tells a shared leaf from others: what it holds, if it is plain or may change; else its identity."""
    match leaf:
        case np.ndarray() | np.generic():
            return leaf.shape, str(leaf.dtype), leaf.tobytes()
        case list() | tuple():
            return type(leaf), tuple(map(told, leaf))
        case bool() | int() | float() | complex() | str() | bytes():
            return Known(leaf)
    return id(leaf)


def own_leaf(name: str, leaf: Any) -> Any:
    """Return a leaf of an example: a copy of what may be changed in place, an array of a number, which must fit."""
    match leaf:
        case Row() | str() | bytes():
            return leaf
        case list():
            return _element(name, leaf)
        case jax.core.Tracer():
            raise traced(f"argument `{name}` is passed")
        case jax.Array():
            if leaf.is_deleted():
                raise usage("PCB405", f"argument `{name}` was deleted, or donated to a call", help="ask with another")
            return leaf
        case int() if type(leaf) is int:
            _check_fits(name, int, leaf, leaf)
            return np.array(leaf, jax.dtypes.canonicalize_dtype(int))
    check_leaf(name, leaf, ())
    array = np.array(_element(name, leaf))
    dtype = jax.dtypes.canonicalize_dtype(array.dtype)
    if array.dtype.kind in "iu" and array.dtype != dtype and array.size:
        _check_fits(name, array.dtype, array.min(), array.max())
    return array.astype(dtype, copy=False)


def _element(name: str, value: Any) -> Any:
    """A number, a text, or a copy of a list of them, whose integers fit."""
    if isinstance(value, int | np.integer):
        _check_fits(name, int if isinstance(value, int) else value.dtype, value, value)
    if isinstance(value, list):
        return [_element(name, each) for each in value]
    return jax.tree.map(lambda each: _element(name, each), value) if isinstance(value, tuple) else value


def _check_fits(name: str, wanted: Any, least: Any, most: Any) -> None:
    dtype = jax.dtypes.canonicalize_dtype(wanted)
    low, high = _limits(dtype)
    if not low <= least <= most <= high:
        wider = 'for numbers of 64 bits, `jax.config.update("jax_enable_x64", True)` before the first array'
        help = wider if dtype.itemsize < 8 else "there is none of more bits: pass a float"
        raise usage("PCB405", f"argument `{name}` does not fit JAX's default integer {dtype}", help=help)


@cache
def _limits(dtype: np.dtype) -> tuple[int, int]:
    return np.iinfo(dtype).min, np.iinfo(dtype).max


def traced(what: str) -> UsageError:
    """Make the error of a request whose numbers are not known."""
    help = "ask outside of `jit` and the like; in a batched function call the other function itself"
    return usage("PCB471", f"{what} where JAX traces, or in a batched function", help=help)


def check_axis(name: str, leaf: Any, axis: int) -> None:
    """Raise UsageError unless a batch of such leaves has this axis."""
    ranks = [column.ndim - 1 for column in leaf.arena.columns] if isinstance(leaf, Row) else [getattr(leaf, "ndim", 0)]
    if ranks and not -min(ranks) - 1 <= axis <= min(ranks):
        title = f"in_axes of `{name}` is {axis}, and a leaf of one example has {min(ranks)} axes"
        raise usage("PCB404", title, help=f"write the axis of a batch that examples lie along, 0 to {min(ranks)}")


def type_of(leaf: Any) -> Any:
    """Return what leaves of one batch have in common; of lists the types of elements, which one array must hold."""
    match leaf:
        case np.ndarray() | jax.Array():
            return leaf.shape, str(leaf.dtype)
        case list():
            return frozenset(map(type_of, leaf))
        case tuple():
            return type(leaf), tuple(map(type_of, leaf))
    return id(leaf.arena) if isinstance(leaf, Row) else type(leaf)
