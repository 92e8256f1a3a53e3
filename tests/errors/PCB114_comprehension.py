import jax.numpy as jnp

import pcbatch

N = jnp.array([1, 2, 3])

@pcbatch.batch
def f(n):
    total = 0
    sums = [total := total + n for _ in range(3)]
    return sums[-1]


f(N)
