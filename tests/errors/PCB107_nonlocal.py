import jax.numpy as jnp

import pcbatch

N = jnp.array([1, 2, 3])


@pcbatch.batch
def f(n):
    def add(k):
        nonlocal n
        n += k
        return n

    return add(1)


f(N)
