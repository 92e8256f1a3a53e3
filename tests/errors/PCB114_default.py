import jax.numpy as jnp

import pcbatch

N = jnp.array([1, 2, 3])

@pcbatch.batch
def f(n):
    def step(k, by=(m := 2)):
        return k + by

    return step(n) + m


f(N)
