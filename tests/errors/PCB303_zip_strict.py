import jax.numpy as jnp

import pcbatch

N = jnp.array([1, 2, 3])

@pcbatch.batch
def f(n):
    for a, b in zip((n, n), (1, 2, 3), strict=True):
        n += a * b
    return n


f(N)
