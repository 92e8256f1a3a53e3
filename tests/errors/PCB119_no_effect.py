import jax.numpy as jnp

import pcbatch

N = jnp.array([1, 2, 3])


@pcbatch.batch
def f(n):
    jnp.sin(n)
    n == 2
    return n


f(N)
