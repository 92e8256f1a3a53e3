import jax.numpy as jnp

import pcbatch

X = jnp.array([1.0, 2.0, 3.0])


@pcbatch.batch
def f(x):
    if x < 0:
        raise ValueError("negative") from OverflowError()
    return jnp.sqrt(x)


f(X)
