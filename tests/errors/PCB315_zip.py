import jax.numpy as jnp

import pcbatch

N = jnp.array([1, 2, 3])

@pcbatch.batch
def f(n):
    total = 0
    for price, _ in zip((5, 3, 2), range(n)):
        total += price
    return total


f(N)
