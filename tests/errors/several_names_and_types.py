import jax.numpy as jnp

import pcbatch

N = jnp.array([1, 2, 3])
V = jnp.ones((3, 2))


@pcbatch.batch
def f(n, v):
    a = first + second
    b = v @ jnp.ones((3, 3))
    c = jnp.zeros(n)
    return a + b + c


f(N, V)
