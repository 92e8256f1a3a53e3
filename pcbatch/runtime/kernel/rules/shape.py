"""Rules of primitives that move elements and compute with none: broadcasts, pieces, joins, reversals."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import jax.numpy as jnp
from jax import Array, lax

from pcbatch.runtime.kernel.rules.moves import moved, taken, window
from pcbatch.runtime.kernel.rules.padding import along, padded_shape, padded_size, picked, reshaped, struct, where
from pcbatch.runtime.kernel.rules.registry import is_key, rule


@rule("broadcast_in_dim")
def broadcast(eqn: Any, x: Array, *_: Array) -> Sequence[Array]:
    """Repeat along new axes; the words of keys stay the last axis."""
    words = (len(eqn.params["shape"]),) if is_key(eqn.outvars[0].aval) else ()
    dims = tuple(eqn.params["broadcast_dimensions"]) + words
    return [lax.broadcast_in_dim(x, struct(eqn.outvars[0].aval).shape, dims)]


@rule("transpose")
def transpose(eqn: Any, x: Array) -> Sequence[Array]:
    """Exchange axes; the words of keys stay the last axis."""
    permutation = tuple(eqn.params["permutation"])
    return [lax.transpose(x, permutation + tuple(range(len(permutation), x.ndim)))]


@rule("iota")
def positions(eqn: Any, *_: Array) -> Sequence[Array]:
    """Number the elements along an axis."""
    shape = padded_shape(eqn.params["shape"])
    return [lax.broadcasted_iota(jnp.int32, shape, eqn.params["dimension"]).astype(eqn.params["dtype"])]


@rule("slice")
def slices(eqn: Any, x: Array) -> Sequence[Array]:
    """Take a range of each axis, also with strides."""
    starts, limits = eqn.params["start_indices"], eqn.params["limit_indices"]
    strides = eqn.params["strides"] or (1,) * len(starts)
    for axis, (start, limit, stride) in enumerate(zip(starts, limits, strides, strict=True)):
        x = window(x, axis, start, -(-(limit - start) // stride), stride)
    return [x]


@rule("split")
def split(eqn: Any, x: Array) -> Sequence[Array]:
    """Cut an axis into pieces."""
    starts = [sum(eqn.params["sizes"][:k]) for k in range(len(eqn.params["sizes"]))]
    return [window(x, eqn.params["axis"], at, n) for at, n in zip(starts, eqn.params["sizes"], strict=True)]


@rule("unstack")
def unstack(eqn: Any, x: Array) -> Sequence[Array]:
    """Take each element of an axis by itself."""
    axis = eqn.params["axis"]
    return [reshaped(picked(x, axis, k), struct(v.aval).shape) for k, v in enumerate(eqn.outvars)]


@rule("rev")
def reverse(eqn: Any, x: Array) -> Sequence[Array]:
    """Turn axes round."""
    for axis in eqn.params["dimensions"]:
        last = eqn.invars[0].aval.shape[axis] - 1
        if last > 0:
            x = moved(x, axis, x.shape[axis], _turned(last), range(last + 1))
    return [x]


def _turned(last: int) -> Callable[[Array], Array]:
    return lambda k: last - k


def _shift(by: int) -> Callable[[Array], Array]:
    return lambda k: k + by


@rule("concatenate", "stack")
def concatenate(eqn: Any, *xs: Array) -> Sequence[Array]:
    """Join arrays along an axis, one that there is or a new one."""
    new = eqn.primitive.name == "stack"
    axis = eqn.params["axis" if "axis" in eqn.params else "dimension"]
    sizes = [1 if new else v.aval.shape[axis] for v in eqn.invars]
    return [joined([jnp.expand_dims(x, axis) if new else x for x in xs], sizes, axis)]


def joined(xs: Sequence[Array], sizes: Sequence[int], axis: int) -> Array:
    """Join padded arrays of these true lengths."""
    pieces = [(x, n) for x, n in zip(xs, sizes, strict=True) if n]
    if not pieces:
        return xs[0]
    room = padded_size(sum(sizes))
    if len(pieces) == 2 and pieces[0][1] == pieces[1][1] == pieces[0][0].shape[axis]:  # two halves
        return _halves(pieces[0][0], pieces[1][0], axis)
    out, at = None, 0
    for x, n in pieces:
        full = x.shape[:axis] + (room,) + x.shape[axis + 1 :]
        if n == 1:
            part = jnp.broadcast_to(x, full)
        elif (at, x.shape[axis]) == (0, room):
            part = x
        else:
            part = moved(x, axis, room, _shift(-at), range(n))
        out = part if out is None else where(along(room, axis, x.ndim) >= at, part, out)
        at += n
    assert out is not None
    return out


def _halves(x: Array, y: Array, axis: int) -> Array:
    """Join two arrays that fill their room, by a selection on a new axis of two."""
    full = x.shape[:axis] + (2,) + x.shape[axis:]
    second = along(2, axis, len(full)) == 1
    both = where(second, jnp.expand_dims(y, axis), jnp.expand_dims(x, axis))
    return reshaped(both, x.shape[:axis] + (2 * x.shape[axis],) + x.shape[axis + 1 :])


@rule("pad")
def pad(eqn: Any, x: Array, fill: Array) -> Sequence[Array]:
    """Put a number before, after and between elements; cut them off where a width is negative."""
    shape = eqn.invars[0].aval.shape
    for axis, (before, after, between) in enumerate(eqn.params["padding_config"]):
        n, step = shape[axis], between + 1
        if (before, after, between) == (0, 0, 0):
            continue
        spread = (n - 1) * step + 1 if n else 0
        room = padded_size(max(before + spread + after, 0))
        k = along(room, axis, x.ndim) - before
        here = (k >= 0) & (k < spread)
        if between:
            at = lax.div(lax.max(k, jnp.zeros_like(k)), jnp.full_like(k, step))
            here = here & (at * step == k)
            k = at
        x = where(here, taken(x, axis, k, range(n)), fill)
    return [x]
