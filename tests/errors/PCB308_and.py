import jax.numpy as jnp

import pcbatch

N = jnp.array([1, 2, 3])
V = jnp.ones((3, 2))


@pcbatch.batch
def f(v, n):
    while n > 0 and v < 3:
        n = n - 1
    return n


f(V, N)
