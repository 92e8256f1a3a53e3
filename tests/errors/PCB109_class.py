import jax.numpy as jnp

import pcbatch

N = jnp.array([1, 2, 3])


@pcbatch.batch
def f(n):
    class Pair:
        low = 1

    return n + Pair.low


f(N)
