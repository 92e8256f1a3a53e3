import jax.numpy as jnp

import pcbatch

V = jnp.ones((3, 2))


def inner(a, b):
    return a @ b


def outer(a):
    return jnp.tanh(inner(a, jnp.ones((3, 3))))


@pcbatch.batch
def f(v):
    w = v * 2
    return jnp.sum(outer(w)) + 1


f(V)
