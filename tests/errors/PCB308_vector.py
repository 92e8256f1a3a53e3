import jax.numpy as jnp

import pcbatch

V = jnp.ones((3, 2))


@pcbatch.batch
def f(v):
    if v > 0:
        return 1
    return 0


f(V)
