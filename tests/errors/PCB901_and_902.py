import jax.numpy as jnp

import pcbatch


@pcbatch.batch(max_depth=3, max_steps=60)
def f(n):
    while n > 100:
        n = n + 0
    if n < 1:
        return 0
    return 1 + f(n - 1)


f(jnp.array([2, 9, 200, 5]))
