import jax.numpy as jnp

import pcbatch

N = jnp.array([1, 2, 3])

@pcbatch.batch
def f(n, small):
    limit, top = small, n
    if n > 1:
        limit, top = 1000, 3_000_000_000
    return limit, top


f(N, N.astype("int8"))
