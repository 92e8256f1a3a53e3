from functools import cache

import jax.numpy as jnp

import pcbatch


@pcbatch.batch
def f(n):
    limit = n

    @cache
    def fib(k):
        return limit if k < 2 else fib(k - 1) + fib(k - 2)

    first = fib(5)
    limit += 100
    return first + fib(5)


f(jnp.array([5, 9]))
