"""Rules of reshapes: free where padding keeps its place, else elements are moved within the axes that change."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from math import prod
from typing import Any

import jax.numpy as jnp
from jax import Array, lax

from pcbatch.runtime.kernel.rules.moves import taken
from pcbatch.runtime.kernel.rules.padding import iota, logical_shape, padded_shape, padded_size, reshaped
from pcbatch.runtime.kernel.rules.registry import rule


@rule("reshape", "squeeze", "expand_dims")
def reshape(eqn: Any, x: Array, *_: Array) -> Sequence[Array]:
    """Give elements in row-major order another shape; of another order of axes first, if the equation says so."""
    old, new = logical_shape(eqn.invars[0].aval), logical_shape(eqn.outvars[0].aval)
    order = eqn.params.get("dimensions") if eqn.primitive.name == "reshape" else None
    if order is not None:
        order = (*order, *range(len(order), len(old)))
        x, old = lax.transpose(x, order), tuple(old[k] for k in order)
    return [reshape_padded(x, old, new)]


def reshape_padded(x: Array, old: Sequence[int], new: Sequence[int]) -> Array:
    """Reshape a padded array between true shapes."""
    if 0 in old:
        return jnp.zeros(padded_shape(new), x.dtype)
    olds, news = ([n for n in shape if n > 1] for shape in (old, new))
    x, done = reshaped(x, padded_shape(olds)), 0
    for before, after in groups(olds, news):
        if not in_place(before, after):
            x = _regrouped(x, done, before, after)
        else:
            x = reshaped(x, x.shape[:done] + padded_shape(after) + x.shape[done + len(before) :])
        done += len(after)
    return reshaped(x, padded_shape(new))


@rule("tile")
def tile(eqn: Any, x: Array) -> Sequence[Array]:
    """Repeat each axis as a whole."""
    shape, reps = eqn.invars[0].aval.shape, eqn.params["reps"]
    both = [n for pair in zip(reps, shape, strict=True) for n in pair]
    x = lax.broadcast_in_dim(x, padded_shape(both), tuple(range(1, len(both), 2)))
    return [reshape_padded(x, both, eqn.outvars[0].aval.shape)]


def groups(old: Sequence[int], new: Sequence[int]) -> Iterator[tuple[list[int], list[int]]]:
    """Cut two shapes of as many elements into the shortest runs of axes that have as many.

    Example:
        >>> list(groups([2, 3, 5], [2, 15]))
        [([2], [2]), ([3, 5], [15])]
    """
    i = j = 0
    while i < len(old):
        before, after = [old[i]], [new[j]]
        i, j = i + 1, j + 1
        while prod(before) != prod(after):
            if prod(before) < prod(after):
                before.append(old[i])
                i += 1
            else:
                after.append(new[j])
                j += 1
        yield before, after


def in_place(old: Sequence[int], new: Sequence[int]) -> bool:
    """Return whether elements of padded arrays lie in one order: all axes but the first have no padding."""
    return list(old) == list(new) or all(padded_size(n) == n for n in (*old[1:], *new[1:]))


def _regrouped(x: Array, axis: int, old: Sequence[int], new: Sequence[int]) -> Array:
    """Move elements within a run of axes, as one axis of all of their room."""
    before, after = x.shape[:axis], x.shape[axis + len(old) :]
    flat = reshaped(x, (*before, prod(padded_shape(old)), *after))
    room = padded_shape(new)
    number, stride = jnp.zeros(room, jnp.int32), 1  # of each element among all of the true shape
    for k in reversed(range(len(new))):
        number, stride = number + iota(room, k) * stride, stride * new[k]
    number = reshaped(number, (prod(room),))
    at, stride = jnp.zeros_like(number), 1
    for n in reversed(old):
        at = at + lax.rem(number, jnp.full_like(number, n)) * stride
        number, stride = lax.div(number, jnp.full_like(number, n)), stride * padded_size(n)
    index = reshaped(at, (1,) * axis + at.shape + (1,) * len(after))
    return reshaped(taken(flat, axis, index), (*before, *room, *after))
