import jax.numpy as jnp

import pcbatch

N = jnp.array([1, 2, 3])
V = jnp.ones((3, 2))


@pcbatch.batch
def g(v):
    return v @ jnp.ones((4, 4))


@pcbatch.batch
def f(v, n):
    if n > 0:
        x = jnp.zeros(2)
    else:
        x = jnp.zeros(3)
    return g(v) + x


f(V, N)
