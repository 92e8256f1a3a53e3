# python 3.12
import jax.numpy as jnp

import pcbatch

N = jnp.array([1, 2, 3])


@pcbatch.batch
def f(n):
    type Number = int
    return n


f(N)
