import jax
import jax.numpy as jnp

import pcbatch

V = jnp.ones((3, 2))


@jax.jit
def product(a, b):
    return a @ b


@pcbatch.batch
def f(v):
    return jnp.sum(product(v, jnp.ones(3)))


f(V)
