import jax.numpy as jnp

import pcbatch

N = jnp.array([1, 2, 3])


@pcbatch.batch
def f(n):
    def shift(k, by=n):
        return k + by

    return shift(1)


f(N)
