import jax.numpy as jnp

import pcbatch

N = jnp.array([1, 2, 3])

total = 0


@pcbatch.batch
def f(n):
    global total
    total += n
    return total


f(N)
