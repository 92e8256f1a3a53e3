"""Rules of sorting: each element goes to the number of those before it, which comparisons count.

The order is JAX's: zeros are equal, NaN come last, equal elements stay in order. It takes n comparisons for each of n
elements, at once up to ONE_HOT of them, then in turn; axes beyond TURNS are refused.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import jax.numpy as jnp
import numpy as np
from jax import Array, lax

from pcbatch.runtime.kernel.rules.elementwise import is_float
from pcbatch.runtime.kernel.rules.moves import ONE_HOT, TURNS
from pcbatch.runtime.kernel.rules.padding import along, from_words, int_info, iota, padded_size, picked, to_words, where
from pcbatch.runtime.kernel.rules.reductions import ranks
from pcbatch.runtime.kernel.rules.registry import Unsupported, rule


@rule("sort")
def sort(eqn: Any, *xs: Array) -> Sequence[Array]:
    """Sort by the first operands, and move all in the same way; always stable."""
    axis, n = eqn.params["dimension"], eqn.invars[0].aval.shape[eqn.params["dimension"]]
    keys = [_ordered(x, 1) for x in xs[: eqn.params["num_keys"]]]
    place = places(keys, axis, n)
    return [put(x, axis, place, n, x.shape[axis]) for x in xs]


@rule("top_k")
def top_k(eqn: Any, x: Array) -> Sequence[Array]:
    """Find the greatest elements and their places, the greatest first, in the total order of floats."""
    ndim = x.ndim
    axis = eqn.params.get("axis", ndim - 1) % ndim
    n, size = eqn.invars[0].aval.shape[axis], padded_size(eqn.params["k"])
    key = total_order(x)
    place = places([~key], axis, n)  # turns the order of integers round
    index = jnp.broadcast_to(along(x.shape[axis], axis, ndim), x.shape)
    found = [put(x, axis, place, n, size), put(index, axis, place, n, size)]
    return [y.astype(v.aval.dtype) for y, v in zip(found, eqn.outvars, strict=True)]


def _ordered(x: Array, nan: int) -> Array:
    """Integers in the order of a key."""
    return ranks(x.astype(jnp.float32) if is_float(x) and x.dtype.itemsize == 2 else x, nan)


def total_order(x: Array) -> Array:
    """Return integers in the total order of floats: -NaN, -inf, -0, 0, inf, NaN."""
    if not is_float(x):
        return x.astype(jnp.int32) if x.dtype == jnp.bool_ else x
    bits = to_words(x.astype(jnp.float32) if x.dtype.itemsize == 2 else x)
    return where(bits < 0, bits ^ jnp.full_like(bits, int_info(bits.dtype).max), bits)


@rule("eq_to", "le_to", "lt_to")
def compare(eqn: Any, x: Array, y: Array) -> Sequence[Array]:
    """Compare in the total order of floats."""
    op = {"eq_to": lax.eq, "le_to": lax.le, "lt_to": lax.lt}[eqn.primitive.name]
    return [op(total_order(x), total_order(y))]


def places(keys: Sequence[Array], axis: int, n: int) -> Array:
    """Count, for each element, those that come before it; elements beyond `n` have the place -1."""
    shape, length = keys[0].shape, keys[0].shape[axis]
    if length * keys[0].size > ONE_HOT and n > TURNS:
        raise Unsupported(f"a sort of {n} elements")
    own = iota(shape, axis)
    if length * keys[0].size <= ONE_HOT:
        mine, others = ([jnp.expand_dims(k, axis + side) for k in keys] for side in (0, 1))
        me, other = along(length, axis + 1, len(shape) + 1), along(length, axis, len(shape) + 1)
        first = _before(others, other, mine, me) & (other < n)
        count = jnp.sum(first.astype(jnp.int32), axis=axis, dtype=jnp.int32)
    else:

        def turn(i: Array, count: Array) -> Array:
            first = _before([picked(k, axis, i) for k in keys], i, keys, own)
            return count + first.astype(jnp.int32)

        count = lax.fori_loop(np.int32(0), np.int32(n), turn, jnp.zeros(shape, jnp.int32))
    return where(own < n, count, jnp.full((), -1, jnp.int32))


def _before(first: Sequence[Array], i: Array, second: Sequence[Array], j: Array) -> Array:
    """Whether one element comes before another: by the keys in turn, then by their places."""
    result = i < j
    for a, b in zip(reversed(first), reversed(second), strict=True):
        result = (a < b) | (a == b) & result
    return result


def put(x: Array, axis: int, place: Array, n: int, size: int) -> Array:
    """Put each element at its place along an axis of padded `size`; `n` have one, all others are junk."""
    if x.size * size <= ONE_HOT:
        words = jnp.expand_dims(to_words(x), axis + 1)
        shape = words.shape[: axis + 1] + (size,) + words.shape[axis + 2 :]
        hit = jnp.expand_dims(place, axis + 1) == along(size, axis + 1, len(shape))
        words = jnp.sum(where(hit, words, jnp.zeros((), words.dtype)), axis=axis, dtype=words.dtype)
        return from_words(words, x.dtype)
    shape = x.shape[:axis] + (size,) + x.shape[axis + 1 :]

    def turn(i: Array, out: Array) -> Array:
        return where(along(size, axis, x.ndim) == picked(place, axis, i), picked(x, axis, i), out)

    found: Array = lax.fori_loop(np.int32(0), np.int32(n), turn, jnp.zeros(shape, x.dtype))
    return found
