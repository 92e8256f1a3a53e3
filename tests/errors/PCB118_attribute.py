import jax.numpy as jnp

import pcbatch

X = jnp.array([1.0, 2.0, 3.0])


@pcbatch.batch
def f(p):
    p.real = 3.0
    return p


f(X)
