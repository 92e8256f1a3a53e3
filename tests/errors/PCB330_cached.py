from functools import cache

import jax.numpy as jnp

import pcbatch


@cache
def row(k):
    return [1] if k == 0 else [*row(k - 1), k]


@pcbatch.batch
def f(n):
    longer = row(n)
    longer.append(9)
    return len(row(n))


f(jnp.array([2, 5]))
