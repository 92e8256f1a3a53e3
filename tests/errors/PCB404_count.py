import jax.numpy as jnp

import pcbatch

N = jnp.array([1, 2, 3])


@pcbatch.batch(in_axes=(0,))
def f(n, m):
    return n + m


f(N, N)
