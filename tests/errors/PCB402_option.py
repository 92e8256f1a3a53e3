import jax.numpy as jnp

import pcbatch

N = jnp.array([1, 2, 3])


@pcbatch.batch
def f(a, b):
    return a + b


f(N, N, schedule="sweep")
