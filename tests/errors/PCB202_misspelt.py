import jax.numpy as jnp

import pcbatch

X = jnp.array([1.0, 2.0, 3.0])


@pcbatch.batch
def f(radius):
    area = 3.14 * raduis * radius
    return area + jnpp.sin(radius)


f(X)
