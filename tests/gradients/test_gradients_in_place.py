"""Gradients of registers that a block accesses by index and also gives another value as a whole.

Only registers of 16 elements or more are accessed by index; smaller ones, for which the same is asked, are read whole.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import pcbatch
from pcbatch.data.host.ragged import Ragged


def added_or_deleted(fs: Any, p: Any) -> Any:
    if p > 0.5:
        fs.append(p)
    elif fs:
        del fs[0]
    return sum(fs)


@pytest.mark.parametrize("max_length", [8, 16])
def test_of_a_list_from_which_an_element_is_deleted(max_length: int) -> None:
    lists = pcbatch.ragged([[1.0, 2.0, 3.0], [4.0, 5.0], []], jnp.float32)
    f = pcbatch.batch(added_or_deleted, max_length=max_length)

    def total(values: Any, p: Any) -> Any:
        return f(Ragged(values, lists.lengths), p).sum()

    of_values, of_p = jax.grad(total, (0, 1))(lists.values, jnp.array([0.1, 0.9, 0.2]))
    np.testing.assert_array_equal(of_values, [[0, 1, 1], [1, 1, 0], [0, 0, 0]])
    np.testing.assert_array_equal(of_p, [0, 1, 0])


def loaded(xs: Any, ys: Any, n: Any) -> Any:
    found = 0.0
    while n > 0:
        found = found + xs[n] ** 2
        xs = ys * found
        n = n - 1
    return found + xs.sum()


def gathered_from_itself(xs: Any, ys: Any, n: Any) -> Any:
    while n > 0:
        xs = xs[(jnp.arange(xs.shape[0]) + n) % xs.shape[0]]
        n = n - 1
    return xs @ ys


def stored_and_loaded(xs: Any, ys: Any, n: Any) -> Any:
    found = xs[0]
    while n > 0:
        xs = xs.at[n].set(found * ys[n])
        found = found + xs[n] * xs[n - 1]
        xs = ys * found
        n = n - 1
    return found + xs.sum()


@pytest.mark.share(2)
@pytest.mark.parametrize("size", [4, 16])
@pytest.mark.parametrize("fn", [loaded, gathered_from_itself, stored_and_loaded])
def test_of_an_array_that_is_replaced(fn: Callable[..., Any], size: int) -> None:
    rng = np.random.default_rng(0)
    xs, ys = (jnp.asarray(rng.normal(size=(3, size)) / 2, jnp.float32) for _ in range(2))
    counts = [0, 1, 3]
    found = jax.grad(lambda xs, ys: pcbatch.batch(fn)(xs, ys, jnp.array(counts)).sum(), (0, 1))(xs, ys)
    for lane, n in enumerate(counts):
        wanted = jax.grad(lambda x, y, n=n: fn(x, y, n), (0, 1))(xs[lane], ys[lane])
        for got, want in zip(found, wanted, strict=True):
            np.testing.assert_allclose(got[lane], want, rtol=1e-4, atol=1e-6)
