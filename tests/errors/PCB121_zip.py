import jax.numpy as jnp

import pcbatch

V = jnp.ones((3, 2))


@pcbatch.batch
def f(v):
    total = 0.0
    for a, b in zip(v, v):
        total += a * b
    return total


f(V)
