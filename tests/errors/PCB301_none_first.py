import jax.numpy as jnp

import pcbatch

N = jnp.array([1, 2, 3])


@pcbatch.batch
def f(n):
    best = None
    for k in range(n):
        best = k
    return best


f(N)
