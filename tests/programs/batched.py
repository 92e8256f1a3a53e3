"""Batched functions that several suites run: through few lanes, on many devices, in pieces."""

from __future__ import annotations

from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

import pcbatch
from tests.programs.compare import assert_same_bits


@pcbatch.batch
def collatz(n):
    count = 0
    while n != 1:
        n = n // 2 if n % 2 == 0 else 3 * n + 1
        count += 1
    return count


@pcbatch.batch
def deep(n):
    if n == 0:
        return 0
    return 1 + deep(n - 1)


@pcbatch.batch
def fib(n):
    if n <= 1:
        return 1
    return fib(n - 2) + fib(n - 1)


@pcbatch.batch(max_steps=60, stats=True)
def fragile(n):
    assert n != 5, f"{n} is not allowed"
    count = 0
    while count < n:
        if count == 11:
            raise ValueError(f"{n} goes beyond eleven")
        count += 1
    while n < 0:
        count += 1
    return count


class Pair(NamedTuple):
    """A pytree with a key in it."""

    key: Any
    values: dict[str, Any]


@pcbatch.batch(in_axes=(0, None, 1))
def walk(pair, matrix, start):
    key, x = pair.key, start
    while jnp.sum(x * x) < pair.values["limit"]:
        key, sub = jax.random.split(key)
        x = matrix @ x + jax.random.normal(sub, (3,))
    return Pair(key, {"limit": x[0]}), x


def walks(inputs: int) -> tuple[Any, ...]:
    """Arguments for `walk`: NumPy arrays beside typed keys, one of them along its second axis."""
    rng = np.random.default_rng(0)
    limits = rng.uniform(1, 30, inputs).astype(np.float32)
    pair = Pair(jax.random.split(jax.random.key(3), inputs), {"limit": limits})
    return pair, np.eye(3, dtype=np.float32) * 0.9, rng.normal(size=(3, inputs)).astype(np.float32)


@pcbatch.batch
def countdown(n):
    while n > 0:
        print(n, "left")
        n -= 1
    return n


def same(found: pcbatch.Result, expected: pcbatch.Result) -> None:
    """Values and statuses."""
    assert_same_bits(found.value, expected.value)
    assert_same_bits(np.asarray(found.status), np.asarray(expected.status))
