import jax.numpy as jnp

import pcbatch

N = jnp.array([1, 2, 3])


@pcbatch.batch
def f(n):
    if n > 0:
        return 1
    elif n < 0:
        return -1


f(N)
