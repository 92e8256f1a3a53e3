import jax.numpy as jnp

import pcbatch

N = jnp.array([1, 2, 3])


@pcbatch.batch
def f(n):
    if n > 1:
        return {"n": n}
    return n, n


f(N)
