import jax.numpy as jnp

import pcbatch

N = jnp.array([1, 2, 3])


def grow(items, n):
    items.append(n)
    return n


@pcbatch.batch
def f(n):
    items = [n]
    m = grow(items, n)
    return items[0] + m


f(N)
