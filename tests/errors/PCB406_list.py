import jax.numpy as jnp

import pcbatch

N = jnp.array([1, 2, 3])


@pcbatch.batch
def f(n, k):
    return n + k


f(N, [1, 2, 3])
