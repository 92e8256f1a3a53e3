import jax.numpy as jnp

import pcbatch

N = jnp.array([1, 2, 3])


def bump(n):
    if n % 2 == 0:
        return n + 1
    return n + 3


@pcbatch.batch
def f(n):
    while n < 10:
        n = bump(n)
    return n


f(N)
