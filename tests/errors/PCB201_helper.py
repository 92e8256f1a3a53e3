import jax.numpy as jnp

import pcbatch

N = jnp.array([1, 2, 3])


@pcbatch.batch
def f(n):
    m = twice(n)

    def twice(k):
        return 2 * k

    return m


f(N)
