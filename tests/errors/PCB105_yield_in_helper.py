import jax.numpy as jnp

import pcbatch

N = jnp.array([1, 2, 3])


@pcbatch.batch
def f(n):
    def both():
        yield n
        yield n + 1

    return sum(both())


f(N)
