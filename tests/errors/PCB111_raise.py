import jax.numpy as jnp

import pcbatch

N = jnp.array([1, 2, 3])


@pcbatch.batch
def f(n):
    if n > 2:
        return n
    if n < 0:
        raise ValueError("negative")


f(N)
