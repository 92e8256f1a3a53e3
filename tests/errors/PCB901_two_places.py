import jax.numpy as jnp

import pcbatch


@pcbatch.batch(max_depth=3)
def f(n):
    if n < 1:
        return 0
    if n % 2 == 0:
        return 1 + f(n - 2)
    return 3 + f(n - 2)


f(jnp.array([20, 2, 31]))
