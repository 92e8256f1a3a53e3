import jax.numpy as jnp

import pcbatch

N = jnp.array([1, 2, 3])


@pcbatch.batch
def f(n):
    items = [n]
    items.append(n + 1)
    return items[0]


f(N)
