import jax.numpy as jnp

import pcbatch

V = jnp.ones((3, 2))


@pcbatch.batch
def f(v):
    weights = jnp.ones((3, 3))
    return jnp.sum(v) + jnp.sum(v @ weights, axis=0)


f(V)
