import jax.numpy as jnp

import pcbatch

N = jnp.array([1, 2, 3])


@pcbatch.batch
def f(n):
    rows = ((n, 1), (2, n))
    for a, b in zip((n, 1), *rows):
        n += a * b
    return n


f(N)
