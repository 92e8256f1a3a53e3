import jax.numpy as jnp

import pcbatch

N = jnp.array([1, 2, 3])

@pcbatch.batch
def f(n):
    m = n + 1
    if n > 2:
        del m
    return n + m


f(N)
