"""Elements of a `vmap` folded into lanes: [lanes, elements, ...] becomes [lanes * elements, ...] and back.

Lane `l` of element `e` is lane `l * elements + e` of the one machine that runs them all.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import jax.numpy as jnp


def fold_lanes(array: Any, axis: int | None, size: int) -> Any:
    """[lanes * size, ...] of an array [lanes, ...] that has the elements along a further axis, or none of its own."""
    if axis is None:
        return jnp.repeat(array, size, axis=0)
    behind = jnp.moveaxis(array, axis, 1)
    return behind.reshape(behind.shape[0] * size, *behind.shape[2:])


def repeat_lanes(array: Any, axis: int | None, lanes: int, size: int) -> Any:
    """[lanes * size, ...] of a value that all lanes share, one for each element along `axis`, or one for all."""
    if axis is None:
        return jnp.broadcast_to(array, (lanes * size, *array.shape))
    front = jnp.moveaxis(array, axis, 0)
    return jnp.broadcast_to(front, (lanes, *front.shape)).reshape(lanes * size, *front.shape[1:])


def unfolded(array: Any, size: int) -> Any:
    """[lanes, size, ...] of what a folded run gives; the elements along axis 1."""
    return array.reshape(array.shape[0] // size, size, *array.shape[1:])


def unfolded_outs(outs: Sequence[Any], per_lane: Sequence[bool], size: int) -> tuple[list[Any], list[int | None]]:
    """What a folded run gives, with the elements as an axis of what each lane has."""
    apart = [unfolded(x, size) if here else x for x, here in zip(outs, per_lane, strict=True)]
    return apart, [1 if here else None for here in per_lane]
