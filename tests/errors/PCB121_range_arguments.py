import jax.numpy as jnp

import pcbatch

N = jnp.array([1, 2, 3])


@pcbatch.batch
def f(n):
    for k in range(0, n, step=2):
        n += k
    for j in enumerate(range(3)):
        n += j[0]
    return n


f(N)
