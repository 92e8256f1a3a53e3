"""A merge sort of one lane, by loops as long as what is sorted.

Runs of `RUN` keys are sorted by counting the keys that come before each, which vector instructions do; then runs are
merged, each pair of neighbours into one.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial

import jax
import jax.numpy as jnp
import numpy as np

from pcbatch.data.values import Index, Value

RUN = 32

Arrays = tuple[Value, ...]
IsLess = Callable[[Value, Value], Value]


def merge_order(keys: Sequence[Value], is_less: IsLess, count: Index = None) -> Value:
    """Return the order, int32[n], in which keys [n] are sorted; equal keys stay in theirs.

    Args:
        keys: The keys, the first one first.
        is_less: Compares two keys of any shape.
        count: The number of keys that are sorted, the first ones; the others stay where they are. None: all.
    """
    size = keys[0].shape[0]
    places = jnp.arange(size, dtype=jnp.int32)
    if size < 2:
        return places
    count = jnp.asarray(size if count is None else count, jnp.int32)
    run = min(RUN, size)
    arrays: Arrays = (*(_padded(key, -(-size // run) * run) for key in (*keys, places)),)
    before = partial(_before, is_less=is_less)  # of the arrays, whose last one is the places
    arrays = jax.lax.fori_loop(
        0, (count + run - 1) // run, lambda k, c: _sorted_run(c, k * run, run, count, before), arrays
    )

    arrays = _merge_runs(arrays, run, count, before) if size > run else arrays
    return arrays[-1][:size]


def merged_places(is_less: IsLess, size: int, count: Index) -> Value:
    """Return the places int32[size] of things in sorted order, where their order is told by `is_less` of two places.

    Those of the first `count` come first; the others stay where they are.
    """
    places = (jnp.arange(size, dtype=jnp.int32),)

    def before(b: Arrays, a: Arrays) -> Value:
        return is_less(b[-1], a[-1])

    return _merge_runs(places, 1, count, before)[-1]


def _merge_runs(arrays: Arrays, run: int, count: Index, before: Callable[[Arrays, Arrays], Value]) -> Arrays:
    """Merge sorted runs of so many elements into one of `count`."""

    def merge_all(c: tuple[Arrays, Value]) -> tuple[Arrays, Value]:
        arrays, width = c
        pairs = (count + 2 * width - 1) // (2 * width)
        merged = partial(_merge, arrays, width=width, count=count, before=before)
        return jax.lax.fori_loop(0, pairs, lambda k, out: merged(out, 2 * k * width), arrays), 2 * width

    return jax.lax.while_loop(lambda c: c[1] < count, merge_all, (arrays, jnp.int32(run)))[0]


def _padded(array: Value, size: int) -> Value:
    return jnp.concatenate([array, jnp.broadcast_to(array[-1:], (size - array.shape[0],))])


def _before(a: Arrays, b: Arrays, is_less: IsLess) -> Value:
    """Whether the keys in `a`, all but its last array, come before those in `b`; not where they are equal."""
    less, equal = False, True
    for x, y in zip(a[:-1], b[:-1], strict=True):
        less |= equal & is_less(x, y)
        equal &= ~is_less(x, y) & ~is_less(y, x)
    return less


def _sorted_run(
    arrays: Arrays, start: Index, run: int, count: Index, before: Callable[[Arrays, Arrays], Value]
) -> Arrays:
    """Sort keys and places from `start` on, `run` of them; those behind `count` stay."""
    part = tuple(jax.lax.dynamic_slice(array, (start,), (run,), allow_negative_indices=False) for array in arrays)
    k = jnp.arange(run, dtype=jnp.int32)
    rows, columns = tuple(x[:, None] for x in part), tuple(x[None, :] for x in part)
    inside = start + k < count
    earlier = before(columns, rows)
    equal = ~earlier & ~before(rows, columns)
    ahead = jnp.where(
        inside[:, None] & inside[None, :], earlier | (equal & (k[None, :] < k[:, None])), k[None, :] < k[:, None]
    )
    ranks = jnp.sum(ahead, axis=1, dtype=jnp.int32)
    order = jnp.sum(jnp.where(ranks[None, :] == k[:, None], k[None, :], 0), axis=1, dtype=jnp.int32)
    return tuple(
        jax.lax.dynamic_update_slice(array, old[order], (start,), allow_negative_indices=False)
        for array, old in zip(arrays, part, strict=True)
    )


def _merge(
    arrays: Arrays, out: Arrays, start: Index, width: Index, count: Index, before: Callable[[Arrays, Arrays], Value]
) -> Arrays:
    """Store into `out` the runs of `width` from `start` on, merged."""
    middle, end = jnp.minimum(start + width, count), jnp.minimum(start + 2 * width, count)

    def head(place: Index) -> Arrays:
        return tuple(
            jax.lax.dynamic_index_in_dim(array, place, 0, False, allow_negative_indices=False) for array in arrays
        )

    def step(c: tuple[Arrays, Value, Value, Value, Arrays, Arrays]) -> Value:
        out, k, left, right, a, b = c
        from_right = (right < end) & ((left >= middle) | before(b, a))
        out = tuple(
            jax.lax.dynamic_update_index_in_dim(x, jnp.where(from_right, j, i), k, 0, allow_negative_indices=False)
            for x, i, j in zip(out, a, b, strict=True)
        )
        moved = from_right.astype(jnp.int32)
        left, right = left + 1 - moved, right + moved
        new = head(jnp.where(from_right, right, left))
        a = tuple(jnp.where(from_right, old, x) for old, x in zip(a, new, strict=True))
        b = tuple(jnp.where(from_right, x, old) for old, x in zip(b, new, strict=True))
        return out, k + 1, left, right, a, b

    begin = out, start, start, middle, head(start), head(middle)
    merged: Arrays = jax.lax.while_loop(lambda c: c[1] < end, step, begin)[0]
    return merged


def is_less(x: Value, y: Value) -> Value:
    """Whether a key comes before another one: NaN comes last, and the zeros are equal."""
    if jnp.issubdtype(x.dtype, jnp.complexfloating):
        real = is_less(x.real, y.real)
        same = ~real & ~is_less(y.real, x.real)
        return real | (same & is_less(x.imag, y.imag))
    if jnp.issubdtype(x.dtype, jnp.floating):
        return (x < y) | ((y != y) & (x == x))
    return x < y


def comparable(key: Value) -> Value:
    """Return keys of a dtype that has an order."""
    return key.astype(jnp.int32) if key.dtype == np.bool_ else key
