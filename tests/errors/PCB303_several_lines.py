import jax.numpy as jnp

import pcbatch

X = jnp.array([1.0, 2.0, 3.0])
V = jnp.ones((3, 2))


@pcbatch.batch
def f(x, v):
    a = v @ jnp.ones((3, 3))
    b = jnp.reshape(v, (5,))
    while x > 0:
        x = x - jnp.dot(v, jnp.ones(7))
    c = x.no_such_attribute
    return a + b + c


f(X, V)
