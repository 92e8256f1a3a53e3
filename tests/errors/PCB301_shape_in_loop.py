import jax.numpy as jnp

import pcbatch

N = jnp.array([1, 2, 3])


@pcbatch.batch
def f(n):
    acc = jnp.zeros(1)
    while n > 0:
        acc = jnp.append(acc, 1.0)
        n -= 1
    return acc


f(N)
