import jax.numpy as jnp

import pcbatch

N = jnp.array([1, 2, 3])
V = jnp.ones((3, 2))


@pcbatch.batch
def g(a):
    if isinstance(a, tuple):
        return a[0]
    return a


@pcbatch.batch
def f(n, v):
    return g([n]) + g((n, n, v))


f(N, V)
