import jax.numpy as jnp

import pcbatch

N = jnp.array([1, 2, 3])


@pcbatch.batch
def f(n):
    if (m := n * n) > 10:
        return m
    return n


f(N)
