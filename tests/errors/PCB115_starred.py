import jax.numpy as jnp

import pcbatch

V = jnp.ones((3, 2))


@pcbatch.batch
def f(v):
    first, *rest = v
    return first + rest[0]


f(V)
