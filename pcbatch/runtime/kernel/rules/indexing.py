"""Rules of reads and writes at indices that the program computes: slices, gathers, scatters.

A read selects along each indexed axis in turn (`moves.taken`); a write compares each element's place with the index and
selects. Axes that an index and its array share, such as that of lanes, stay side by side and cost nothing. Writes at
many places go one after the other, in the order of the indices, as on a CPU: up to TURNS places.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from math import prod
from typing import Any

import jax.numpy as jnp
import numpy as np
from jax import Array, lax

from pcbatch.runtime.kernel.rules.elementwise import greater, is_float, less
from pcbatch.runtime.kernel.rules.moves import TURNS, taken, window
from pcbatch.runtime.kernel.rules.padding import (
    along,
    filled,
    int_info,
    iota,
    padded_size,
    picked,
    reshaped,
    struct,
    where,
)
from pcbatch.runtime.kernel.rules.registry import Unsupported, is_key, rule

UNROLLED = 4  # writes that are not made a loop


def clamped(start: Array, most: int) -> Array:
    """Limit an index to 0 .. `most` in its own type, and make it int32."""
    most = min(most, int(int_info(start.dtype).max))
    top = jnp.full_like(start, most)
    return lax.max(jnp.zeros_like(start), lax.min(start, top)).astype(jnp.int32)


def inside(start: Array, most: int) -> Array:
    """Return whether an index is in 0 .. `most`."""
    most = min(most, int(int_info(start.dtype).max))
    return (start >= jnp.zeros_like(start)) & (start <= jnp.full_like(start, most))


def _fitted(start: Array, x: Array, axis: int) -> Array:
    """An index of leading axes as one that broadcasts against `x`, plus the positions along an axis of a window."""
    return reshaped(start, start.shape + (1,) * (x.ndim - start.ndim))


def read(x: Array, axis: int, start: Array, length: int, size: int) -> Array:
    """Read a window of `size` of an axis of `length` from `start`, which has the leading axes of `x`."""
    if size == length:
        return x
    first = _fitted(start, x, axis)
    if size <= 1:
        return taken(x, axis, first)
    return taken(x, axis, first + along(padded_size(size), axis, x.ndim))


@rule("dynamic_slice")
def dynamic_slice(eqn: Any, x: Array, *starts: Array) -> Sequence[Array]:
    """Read a window, moved so that it lies inside."""
    for axis, (n, size) in enumerate(zip(eqn.invars[0].aval.shape, eqn.params["slice_sizes"], strict=True)):
        x = read(x, axis, clamped(starts[axis], n - size), n, size)
    return [x]


@rule("dynamic_update_slice")
def dynamic_update_slice(eqn: Any, x: Array, new: Array, *starts: Array) -> Sequence[Array]:
    """Write a window, moved so that it lies inside."""
    shape, sizes = eqn.invars[0].aval.shape, eqn.invars[1].aval.shape
    if 0 in sizes:
        return [x]
    places = {k: clamped(s, n - w) for k, (s, n, w) in enumerate(zip(starts, shape, sizes, strict=True))}
    return [write(x, new, places, shape, sizes, 0, lambda old, new: new, None)]


def write(
    x: Array,
    new: Array,
    starts: dict[int, Array],
    shape: Sequence[int],
    sizes: Sequence[int],
    leading: int,
    op: Callable[[Array, Array], Array],
    only: Array | None,
) -> Array:
    """Write one window of true `sizes` into `x` of true `shape`; axis -> start, of the leading axes; `only` where true.

    `leading` axes are those that the starts have; along them there is no window.
    """
    hit: Array = jnp.ones((1,) * x.ndim, jnp.bool_) if only is None else _fitted(only, x, 0)
    for axis in range(leading, x.ndim):
        n, w = shape[axis], sizes[axis]
        if w == n:
            continue
        place = along(x.shape[axis], axis, x.ndim)
        if axis in starts:
            place = place - _fitted(starts[axis], x, axis)
        if w == 1:
            hit = hit & (place == 0)
        else:
            new = taken(new, axis, place)
            hit = hit & (place >= 0) & (place < w)
    return where(hit, op(x, jnp.broadcast_to(new, x.shape)), x)


@rule("gather")
def gather(eqn: Any, x: Array, indices: Array) -> Sequence[Array]:
    """Read windows at many places."""
    p, d = eqn.params, eqn.params["dimension_numbers"]
    shape, sizes, offsets = list(eqn.invars[0].aval.shape), list(p["slice_sizes"]), list(d.offset_dims)
    result = struct(eqn.outvars[0].aval).shape
    if is_key(eqn.invars[0].aval):  # the words are one more axis, all of it a window
        shape, sizes, offsets = [*shape, 2], [*sizes, 2], [*offsets, len(result) - 1]
    fills, clips = mode(p["mode"])
    batch = indices.ndim - 1
    if 0 in eqn.outvars[0].aval.shape:
        return [jnp.zeros(result, x.dtype)]
    if any(n < w for n, w in zip(shape, sizes, strict=True)):
        raise Unsupported("a window larger than its array")
    if fills:
        indices = indices.astype(jnp.int32)
    starts = [jnp.squeeze(picked(indices, batch, k), batch) for k in range(len(d.start_index_map))]
    # Axes: those of the indices (of which the array has the ones that they share), then the others of the array.
    beside = dict(zip(d.start_indices_batching_dims, d.operand_batching_dims, strict=True))
    rest = [k for k in range(len(shape)) if k not in d.operand_batching_dims]
    x = lax.transpose(x, (*(beside[k] for k in sorted(beside)), *rest))
    x = reshaped(x, [indices.shape[k] if k in beside else 1 for k in range(batch)] + list(x.shape[len(beside) :]))
    valid = None
    for place, axis in enumerate(rest, batch):
        n, w = shape[axis], sizes[axis]
        if axis in d.start_index_map:
            start = starts[d.start_index_map.index(axis)]
            fine = inside(start, n - w)
            valid = fine if valid is None else valid & fine
            x = read(x, place, clamped(start, n - w), n, w)
        else:
            x = window(x, place, 0, w)
    x = jnp.broadcast_to(x, indices.shape[:batch] + x.shape[batch:])
    if fills and valid is not None:
        x = where(_fitted(valid, x, 0), x, filled((), fill_value(p["fill_value"], x.dtype), x.dtype))
    kept = [place for place, axis in enumerate(rest, batch) if axis not in d.collapsed_slice_dims]
    x = reshaped(x, indices.shape[:batch] + tuple(x.shape[k] for k in kept))
    order, batches, windows = [], iter(range(batch)), iter(range(batch, x.ndim))
    for k in range(x.ndim):
        order.append(next(windows if k in offsets else batches))
    return [lax.transpose(x, order)]


def mode(given: Any) -> tuple[bool, bool]:
    """Return whether a mode fills (drops) what is out of bounds, and whether it moves writes into bounds."""
    name = getattr(given, "name", str(given))
    if name not in ("CLIP", "FILL_OR_DROP", "PROMISE_IN_BOUNDS"):
        raise Unsupported(f"indices of mode {name}")
    return name == "FILL_OR_DROP", name == "CLIP"


def fill_value(given: Any, dtype: Any) -> Any:
    """Return the value of what is read out of bounds: NaN, the least signed or the greatest unsigned number."""
    if given is not None:
        return given
    if jnp.issubdtype(dtype, jnp.inexact):
        return np.nan
    if dtype == jnp.bool_:
        return True
    info = int_info(dtype)
    return info.min if jnp.issubdtype(dtype, jnp.signedinteger) else info.max


OPERATIONS: dict[str, Callable[[Array, Array], Array]] = {
    "scatter": lambda old, new: new,
    "scatter-add": lambda old, new: old + new,
    "scatter-sub": lambda old, new: old - new,
    "scatter-mul": lambda old, new: old * new,
    "scatter-min": less,
    "scatter-max": greater,
    "scatter_add": lambda old, new: old + new,
    "scatter_sub": lambda old, new: old - new,
    "scatter_mul": lambda old, new: old * new,
    "scatter_min": less,
    "scatter_max": greater,
}


def operation(eqn: Any) -> Callable[[Array, Array], Array]:
    """Return what a scatter does with an old and a new value."""
    op, jaxpr = OPERATIONS[eqn.primitive.name], eqn.params["update_jaxpr"]
    if eqn.primitive.name == "scatter" and jaxpr is not None:
        inner = getattr(jaxpr, "jaxpr", jaxpr)
        if inner.eqns or list(inner.outvars) != [inner.invars[1]]:
            raise Unsupported("a scatter with a function of its own")

    def computed(old: Array, new: Array) -> Array:
        if is_float(old) and old.dtype.itemsize == 2:
            return op(old.astype(jnp.float32), new.astype(jnp.float32)).astype(old.dtype)
        return op(old, new)

    return op if eqn.primitive.name == "scatter" else computed


@rule(*OPERATIONS)
def scatter(eqn: Any, x: Array, indices: Array, new: Array) -> Sequence[Array]:
    """Write windows at many places, one after the other; those not all inside are dropped, or moved inside."""
    d, op = eqn.params["dimension_numbers"], operation(eqn)
    if x.dtype == jnp.bool_ and eqn.primitive.name not in ("scatter",):
        raise Unsupported("arithmetic of truth values")
    _, clips = mode(eqn.params["mode"])
    shape, given = list(eqn.invars[0].aval.shape), list(eqn.invars[2].aval.shape)
    windows = list(d.update_window_dims)
    if 0 in given or 0 in shape:
        return [x]
    if is_key(eqn.invars[0].aval):
        shape, given, windows = [*shape, 2], [*given, 2], [*windows, len(given)]
    batch = indices.ndim - 1
    beside = dict(zip(d.scatter_indices_batching_dims, d.operand_batching_dims, strict=True))
    shared, turns = sorted(beside), [k for k in range(batch) if k not in beside]
    rest = [k for k in range(len(shape)) if k not in d.operand_batching_dims]
    kept = [k for k in rest if k not in d.inserted_window_dims]
    sizes = {axis: given[k] for axis, k in zip(kept, windows, strict=True)}
    # Everything with the axes that are shared first, then the places to write at as one axis, then those of a window.
    lead, order = len(shared), (*(beside[k] for k in shared), *rest)
    x = lax.transpose(x, order)
    places = [k for k in range(len(given)) if k not in windows]  # of the updates, in the order of the indices'
    new = lax.transpose(new, (*(places[k] for k in (*shared, *turns)), *windows))
    room = tuple(indices.shape[k] for k in turns)
    spans = [padded_size(sizes.get(k, 1)) for k in rest]
    new = reshaped(new, (*new.shape[:lead], prod(room), *spans))
    starts = lax.transpose(indices, (*shared, *turns, batch))
    starts = reshaped(starts, (*starts.shape[:lead], prod(room), starts.shape[-1]))
    real = _real(room, [eqn.invars[1].aval.shape[k] for k in turns])
    truth = [shape[k] for k in order]
    extent = [*truth[:lead], *(sizes.get(k, 1) for k in rest)]
    if any(n < w for n, w in zip(truth, extent, strict=True)):
        raise Unsupported("a window larger than its array")

    def turn(i: Any, out: Array) -> Array:
        at = jnp.squeeze(picked(starts, lead, i), lead)
        only = reshaped(picked(real, 0, i), (1,) * lead) if lead else reshaped(picked(real, 0, i), ())
        begin = {}
        for k, axis in enumerate(d.scatter_dims_to_operand_dims):
            place = lead + rest.index(axis)
            start, most = jnp.squeeze(picked(at, lead, k), lead), truth[place] - extent[place]
            if not clips:
                only = only & inside(start, most)
            begin[place] = clamped(start, most)
        one = jnp.squeeze(picked(new, lead, i), lead)
        return write(out, one, begin, truth, extent, lead, op, only)

    count = real.shape[0] if len(turns) != 1 else eqn.invars[1].aval.shape[turns[0]]
    if count > TURNS:
        raise Unsupported(f"writes at {count} places")
    if count <= UNROLLED:
        for i in range(count):
            x = turn(i, x)
    else:
        x = lax.fori_loop(np.int32(0), np.int32(count), turn, x)
    back = [order.index(k) for k in range(len(order))]
    return [lax.transpose(x, back)]


def _real(room: Sequence[int], sizes: Sequence[int]) -> Array:
    """Tell the places to write at from padding, as one axis."""
    real = jnp.ones(tuple(room), jnp.bool_)
    for axis, n in enumerate(sizes):
        if room[axis] != n:
            real = real & (iota(room, axis) < n)
    return reshaped(real, (prod(room),))
