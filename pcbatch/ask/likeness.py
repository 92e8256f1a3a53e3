"""Tests of whether the arguments of a request are like those of an earlier one, without flattening them."""

from __future__ import annotations

import operator
import weakref
from collections.abc import Callable, Iterator
from typing import Any

import jax
import numpy as np

from pcbatch.ask.arena import Row
from pcbatch.ask.leaves import is_one, leaves_of, told
from pcbatch.lowering.typing.pytree import flatten

Likeness = Callable[[Any, list[Any]], bool]
"""Tells whether an argument is like another, and appends the leaves that are the example's own, in order."""


def likeness(value: Any, axes: Iterator[int | None]) -> Likeness | None:
    """Return the likeness of an argument; None if only a look at all of it can tell, as for a list of numbers.

    Args:
        value: the argument.
        axes: of its leaves the axis for the examples, None for one that examples share; as many are taken as it has.
    """
    kind = type(value)
    if kind is dict:
        return _of_dict(value, axes)
    if issubclass(kind, list | tuple) and (kind in (list, tuple) or hasattr(kind, "_fields")) and not is_one(value):
        parts = [likeness(part, axes) for part in value]
        known = [part for part in parts if part is not None]
        return _of_sequence(kind, known) if len(known) == len(parts) else None
    leaves, _ = leaves_of(value)
    shared = [next(axes) is None for _ in leaves]
    if all(shared):
        return _of_shared(value)
    return _of_own(value) if leaves[0] is value else None


def _of_dict(value: dict[Any, Any], axes: Iterator[int | None]) -> Likeness | None:
    names = list(value)
    try:
        parts = [(name, likeness(value[name], axes)) for name in sorted(names)]  # the order of leaves
    except TypeError:  # names that cannot be compared, which JAX refuses
        return None
    known = [(name, part) for name, part in parts if part is not None]

    def is_like(other: Any, own: list[Any]) -> bool:
        return type(other) is dict and list(other) == names and all(part(other[name], own) for name, part in known)

    return is_like if len(known) == len(parts) else None


def _of_sequence(kind: Any, parts: list[Likeness]) -> Likeness:
    def is_like(other: Any, own: list[Any]) -> bool:
        same = type(other) is kind and len(other) == len(parts)
        return same and all(part(each, own) for part, each in zip(parts, other, strict=True))

    return is_like


def _of_shared(value: Any) -> Likeness:
    """The likeness of what is the very same, or, of arrays that may change in place, holds the same."""
    if isinstance(value, jax.Array):
        return lambda other, own: other is value
    leaves, tree = flatten(value)
    kept = [leaf for leaf in leaves if not isinstance(leaf, np.ndarray)]
    held = [told(leaf) for leaf in leaves if isinstance(leaf, np.ndarray)]

    def is_like(other: Any, own: list[Any]) -> bool:
        leaves, found = flatten(other)
        if found != tree:
            return False
        others = [leaf for leaf in leaves if not isinstance(leaf, np.ndarray)]
        same = len(others) == len(kept) and all(map(operator.is_, others, kept))
        return same and [told(leaf) for leaf in leaves if isinstance(leaf, np.ndarray)] == held

    return is_like


def _of_own(value: Any) -> Likeness | None:
    match value:
        case Row():
            arena = weakref.ref(value.arena)  # what is remembered does not keep results on the device
            return _appending(lambda other: type(other) is Row and other.arena is arena())
        case np.ndarray() | jax.Array():
            like = value.shape, value.dtype
            return _appending(
                lambda other: isinstance(other, np.ndarray | jax.Array) and (other.shape, other.dtype) == like
            )
        case np.generic() | int() | float():
            kind = type(value)
            return _appending(lambda other: type(other) is kind)
    return None


def _appending(is_like: Callable[[Any], bool]) -> Likeness:
    def leaf_is_like(other: Any, own: list[Any]) -> bool:
        own.append(other)
        return is_like(other)

    return leaf_is_like
