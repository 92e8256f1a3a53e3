import jax.numpy as jnp

import pcbatch


@pcbatch.batch(modes={"x * y": pcbatch.Few(4)})
def power(x, n):
    y = x
    while n > 0:
        y = y * x
        n = n - 1
    return y


power(jnp.ones(3), jnp.arange(3))
