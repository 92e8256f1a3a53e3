import jax.numpy as jnp

import pcbatch


@pcbatch.batch(max_depth=4)
def total(n, x):
    return x if n == 0 else n + total(n - 1, x)


total(jnp.array([1, 9, 3, 7]), jnp.array([0.5, 1.5, 2.5, 3.5]))
