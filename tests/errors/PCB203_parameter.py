import jax.numpy as jnp

import pcbatch

N = jnp.array([1, 2, 3])


@pcbatch.batch
def f(n, g):
    def g(k):
        return k + 1

    return g(n)


f(N, N)
