import jax.numpy as jnp

import pcbatch

N = jnp.array([1, 2, 3])


@pcbatch.batch(in_axes=1)
def f(n):
    return n


f(N)
