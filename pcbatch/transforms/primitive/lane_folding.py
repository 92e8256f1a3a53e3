"""Elements of a `vmap` folded into lanes: [lanes, elements, ...] becomes [lanes * elements, ...] and back.

Lane `l` of element `e` is lane `l * elements + e` of the one machine that runs them all.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import jax.numpy as jnp


def fold_lanes(array: Any, axis: int | None, size: int) -> Any:
    """Fold the elements along `axis` of an array [lanes, ...] into lanes: [lanes * size, ...]. None: each element has
    the same array."""
    if axis is None:
        return jnp.repeat(array, size, axis=0)
    second = jnp.moveaxis(array, axis, 1)
    return second.reshape(second.shape[0] * size, *second.shape[2:])


def repeat_lanes(array: Any, axis: int | None, lanes: int, size: int) -> Any:
    """Repeat a shared value for the lanes of a folded run: [lanes * size, ...]. It has the elements along `axis`; None:
    each element has the same value."""
    if axis is None:
        return jnp.broadcast_to(array, (lanes * size, *array.shape))
    first = jnp.moveaxis(array, axis, 0)
    return jnp.broadcast_to(first, (lanes, *first.shape)).reshape(lanes * size, *first.shape[1:])


def unfolded(array: Any, size: int) -> Any:
    """Undo `fold_lanes`: [lanes, size, ...], with the elements along axis 1."""
    return array.reshape(array.shape[0] // size, size, *array.shape[1:])


def unfolded_outs(outs: Sequence[Any], per_lane: Sequence[bool], size: int) -> tuple[list[Any], list[int | None]]:
    """Unfold those results of a folded run that are `per_lane`; gives all results, and the axes of the elements."""
    results = [unfolded(x, size) if by_lane else x for x, by_lane in zip(outs, per_lane, strict=True)]
    return results, [1 if by_lane else None for by_lane in per_lane]
