import jax.numpy as jnp

import pcbatch

N = jnp.array([1, 2, 3])


@pcbatch.batch
def f(n):
    return g(n - 1)


@pcbatch.batch
def g(n):
    if n > 0:
        return f(n) + 1
    return f(n)


f(N)
