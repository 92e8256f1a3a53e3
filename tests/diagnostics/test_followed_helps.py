"""What the help of a message tells to write is accepted, and gives in every lane what the plain function gives."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import pcbatch

pytestmark = pytest.mark.promotion("standard")
N = np.arange(1, 4, dtype=np.int32)


def reversed_enumerate(n):
    xs = jnp.arange(3) + n
    for i, x in zip(reversed(range(len(xs))), reversed(xs)):
        n = n * 2 + i * x
    return n


def zipped_rows(n):
    rows = ((n, 1), (2, n))
    for a, b in tuple(zip(*rows)):
        n += a * b
    return n


def array_beside_a_range(n):
    total = 0
    for price, _ in zip(jnp.array((5, 3, 2)), range(n)):
        total += price
    return total


def left_with_break(n):
    total = 0
    for i, price in enumerate((5, 3, 2)):
        if i >= n:
            break
        total += price
    return total


def list_without_an_element(n):
    xs = [n, 2 * n, 3]
    xs = [*xs[:1], *xs[2:]]
    return sum(xs)


def chosen_call(n):
    return up(n) if n > 1 else down(n)


def number_as_a_float(n):
    top = n
    if n > 1:
        top = 3_000_000_000.0
    return top


def swapped(n):
    xs, i, j = jnp.arange(5) * n, n, 0
    xs = xs.at[i].set(xs[j]).at[j].set(xs[i])
    xs = xs.at[n].subtract(n)
    return jnp.sum(xs * jnp.arange(5) ** 2)


def stack_with_a_counter(n):
    items, size = jnp.zeros(4, int), 0
    for v in range(n):
        items, size = items.at[size].set(v), size + 1
    total = 0
    while size > 0:
        size -= 1
        total = total * 3 + items[size]
    return total


def lists_made_anew(n):
    items = [n]
    items = [*items, n + 1]
    items = [*items[:0], 7, *items[0:]]
    items = [*items[:1], 2 * n, *items[1 + 1 :]]
    x, items = items[-1], items[:-1]
    items = items[::-1]
    seen = {"a": n}
    seen = {**seen, **{"b": x}}
    return items[0] * 10 + items[1] + seen["a"] - seen["b"] + jnp.sort(jnp.asarray(items))[0]


def flags_for_a_set(n):
    seen = jnp.zeros(4, bool)
    count = 0
    for k in range(3):
        seen = seen.at[(n + 3 * k) % 4].set(True)
    for flag in seen:
        count += int(flag)
    return count


def list_as_an_array(n):
    rows = [[1, n], [n, 4]]
    return jnp.asarray(rows)[n % 2][1] + jnp.asarray((5, 6, 7, 8))[n]


def short_loop_over_a_list(n):
    xs = [0, 1, 2]
    for i in pcbatch.unroll(range(3)):
        xs = [*xs[:i], n * xs[i] + i, *xs[i + 1 :]]
    return xs[2] * 10 + xs[1]


def slice_by_a_mask(n):
    xs = jnp.arange(1, 5) * n
    k = jnp.arange(len(xs))
    return jnp.sum(jnp.where((n <= k) & (k < n + 2), xs, 0)) + jnp.sum(jnp.where(xs > 3, xs, 0))


def slice_of_constant_size(n):
    return jnp.sum(jax.lax.dynamic_slice_in_dim(jnp.arange(9), n, 2))


def places_of_known_number(n):
    xs = jnp.arange(4)
    return jnp.where(xs > n, size=4)[0][0]


def index_in_a_recursion(n):
    return total_from(jnp.arange(4) * n, 0)


def copies_with_types_of_their_own(n):
    return doubled(n) + jnp.sum(doubled(jnp.arange(3) + n))


def text_outside(n):
    found = 0
    if n > 1:
        found = 1
    return found


def bits(n):
    total = 0
    for k in range(3):
        total += (n >> k) & 1
    return total


def steps_of_a_half(n):
    total = 0.0
    for k in range(n):
        total += 1.0 + k * 0.5
    return total


def middle_of_three(n):
    return jnp.sort(jnp.asarray([n, 2, 2 * n]))[1] + jnp.array([7, 8])[jnp.argsort(jnp.array([n, 2]))][0]


@pcbatch.batch
def total_from(xs, k):
    return 0 if k == len(xs) else xs[k] + total_from(xs, k + 1)


@pcbatch.inline
def doubled(v):
    return 2 * v


@pcbatch.batch
def up(n):
    return n + 1 if n > 0 else n


@pcbatch.batch
def down(n):
    return n - 1 if n > 0 else n


FOLLOWED = [
    reversed_enumerate,
    zipped_rows,
    array_beside_a_range,
    left_with_break,
    list_without_an_element,
    chosen_call,
    number_as_a_float,
    swapped,
    stack_with_a_counter,
    lists_made_anew,
    flags_for_a_set,
    list_as_an_array,
    short_loop_over_a_list,
    slice_by_a_mask,
    slice_of_constant_size,
    places_of_known_number,
    index_in_a_recursion,
    copies_with_types_of_their_own,
    text_outside,
    bits,
    steps_of_a_half,
    middle_of_three,
]


@pytest.mark.share(3)
@pytest.mark.parametrize("fn", FOLLOWED)
def test_it_works(fn: Callable[..., Any]) -> None:
    batched = pcbatch.batch(fn)
    np.testing.assert_allclose(batched(N), [np.float32(batched.plain(jnp.int32(n))) for n in N])


def number_beyond(n):
    top = n
    if n > 1:
        top = 3_000_000_000
    return top


def test_a_wider_type_is_told_only_if_the_join_is_wide_enough() -> None:
    """uint32 and int32 join to int64, which is int32 without 64-bit types."""
    with pytest.raises(pcbatch.CompileError) as info:
        pcbatch.batch(number_beyond)(N)
    assert [(d.code, "uint32" in d.helps[0]) for d in info.value.diagnostics] == [("PCB312", False)]
    with jax.enable_x64(True), pytest.raises(pcbatch.CompileError, match=r"jnp\.(uint32|int64)\(3000000000\)"):
        pcbatch.batch(number_beyond)(N)
