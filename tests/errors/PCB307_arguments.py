import jax.numpy as jnp

import pcbatch

N = jnp.array([1, 2, 3])
V = jnp.ones((3, 2))


@pcbatch.batch
def g(a):
    if jnp.sum(a) > 0:
        return 1
    return 0


@pcbatch.batch
def f(n, v):
    return g(n) + g(v)


f(N, V)
