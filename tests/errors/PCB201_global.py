import jax.numpy as jnp

import pcbatch

scale = 3


@pcbatch.batch
def f(n):
    n = n * scale
    scale = n + 1
    return scale


f(jnp.array([1, 2, 3]))
