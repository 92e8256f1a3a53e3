import jax.numpy as jnp

import pcbatch

N = jnp.array([1, 2, 3])


@pcbatch.batch
def f(n):
    for k in (1, 2, 3):
        n += k
    return n


f(N)
