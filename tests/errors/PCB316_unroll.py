import jax.numpy as jnp

import pcbatch

N = jnp.array([1, 2, 3])

@pcbatch.batch
def f(n):
    for k in pcbatch.unroll(range(10_000)):
        if n % (k + 1) == 0:
            n += k
    return n


f(N)
