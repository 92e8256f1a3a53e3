"""The batching rule: a `vmap` of an operation is the operation for all elements, and those of a run become lanes.

Elements are folded into lanes: [lanes, elements, ...] becomes [lanes * elements, ...], and results are unfolded.

Lane `l` of element `e` is lane `l * elements + e` of the one machine that runs them all.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import jax
import jax.numpy as jnp
from jax.interpreters import batching

from pcbatch.runtime.vm.raw_result import unsought
from pcbatch.transforms.primitive.operation import Axis, Operation, bind, run_p

_struct: Any = jax.ShapeDtypeStruct  # JAX gives it no types


def _batch(args: Sequence[Any], axes: Sequence[Axis], *, operation: Operation, asking: Any) -> Any:
    size = next(x.shape[axis] for x, axis in zip(args, axes, strict=True) if axis is not None)
    if size == 0:
        return _batch_of_none(operation, args, axes)
    batched = operation.batch(size, axes)
    operands = [batched.operand(k, x, axis) for k, (x, axis) in enumerate(zip(args, axes, strict=True))]
    outs = bind(batched.operation, *operands)
    with unsought():  # results are only moved here: NaN in them was looked for where they were computed
        return batched.results(outs)


def _batch_of_none(operation: Operation, args: Sequence[Any], axes: Sequence[Axis]) -> tuple[list[Any], list[Axis]]:
    """The results of a `vmap` over no elements. A folded run could not tell how many of its zero lanes belong to one
    element."""

    def element(x: Any, axis: Axis) -> Any:
        return _struct(x.shape if axis is None else (*x.shape[:axis], *x.shape[axis + 1 :]), x.dtype)

    types = jax.eval_shape(lambda *xs: bind(operation, *xs), *map(element, args, axes))
    return [jnp.zeros((0, *type_.shape), type_.dtype) for type_ in types], [0] * len(types)


batching.primitive_batchers[run_p] = _batch


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
