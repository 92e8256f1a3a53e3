import jax.numpy as jnp

import pcbatch

N = jnp.array([1, 2, 3])

@pcbatch.batch
def f(n):
    m = n + 1
    while n > 0:
        n -= 1
        del m
    return n


f(N)
