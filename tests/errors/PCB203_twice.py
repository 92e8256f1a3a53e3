import jax.numpy as jnp

import pcbatch

N = jnp.array([1, 2, 3])


@pcbatch.batch
def f(n):
    step = lambda k: k + 1
    if n > 2:
        step = lambda k: k - 1
    return step(n)


f(N)
