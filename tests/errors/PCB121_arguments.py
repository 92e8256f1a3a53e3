import jax.numpy as jnp

import pcbatch

N = jnp.array([1, 2, 3])

@pcbatch.batch
def f(n):
    bounds = (0, 3)
    for k in range(0, n, step=2):
        n += k
    for k in range(*bounds):
        n += k
    for _ in zip():
        n += 1
    for j, k in enumerate(bounds, begin=1):
        n += j * k
    return n


f(N)
