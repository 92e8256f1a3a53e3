import jax.numpy as jnp

import pcbatch

N = jnp.array([1, 2, 3])


@pcbatch.batch
def halve(n):
    return n if n < 2 else halve(n // 2)


def helper(n):
    return halve(n) + 1


@pcbatch.batch
def f(n):
    return helper(n)


f(N)
