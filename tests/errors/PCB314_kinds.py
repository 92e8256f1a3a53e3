import jax.numpy as jnp

import pcbatch

N = jnp.array([1, 2, 3])

@pcbatch.batch
def f(n):
    for k in n:
        n += k
    for k in 3:
        n += k
    for k, m in enumerate(None):
        n += k * m
    return n


f(N)
