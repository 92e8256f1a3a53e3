import jax.numpy as jnp

import pcbatch

N = jnp.array([1, 2, 3])
X = jnp.array([1.0, 2.0, 3.0])


@pcbatch.batch
def f(n, x):
    total = 0
    for k in range(0, 10, x):
        total += k
    for k in range(x):
        total += k
    for k in range("3"):
        total += k
    return total


f(N, X)
