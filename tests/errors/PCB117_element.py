import jax.numpy as jnp

import pcbatch

V = jnp.ones((3, 2))


@pcbatch.batch
def f(v):
    v[0] = 0.0
    v[1] += 2.0
    return v


f(V)
