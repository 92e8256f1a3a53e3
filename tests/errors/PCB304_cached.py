from functools import lru_cache

import jax.numpy as jnp

import pcbatch


@pcbatch.batch
def f(n):
    calls = 0

    @lru_cache(maxsize=None)
    def fib(k):
        nonlocal calls
        calls += 1
        return k if k < 2 else fib(k - 1) + fib(k - 2)

    return fib(n), calls


f(jnp.array([5, 9]))
