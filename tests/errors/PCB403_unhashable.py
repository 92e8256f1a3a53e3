import jax.numpy as jnp

import pcbatch

N = jnp.array([1, 2, 3])


@pcbatch.batch(static_argnames="k")
def f(n, k):
    return n + k[0]


f(N, [1])
