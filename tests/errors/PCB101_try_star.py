import jax.numpy as jnp

import pcbatch

X = jnp.array([1.0, 2.0, 3.0])


@pcbatch.batch
def f(x):
    try:
        y = 1.0 / x
    except* ZeroDivisionError:
        y = 0.0
    return y


f(X)
