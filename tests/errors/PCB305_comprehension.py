import jax.numpy as jnp

import pcbatch

N = jnp.array([1, 2, 3])


@pcbatch.batch
def f(n):
    small = [k for k in range(3) if k < n]
    return sum(small)


f(N)
