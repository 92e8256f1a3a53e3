import jax.numpy as jnp

import pcbatch

X = jnp.array([1.0, 2.0, 3.0])


@pcbatch.batch
def f(x):
    try:
        return 1.0 / x
    except ZeroDivisionError:
        return 0.0


f(X)
