import jax.numpy as jnp

import pcbatch

N = jnp.array([1, 2, 3])


@pcbatch.batch
def f(n):
    if n > 1:
        y = n * n
    return jnp.sin(3.0) + y


f(N)
