import jax.numpy as jnp

import pcbatch


@pcbatch.batch
def h(a, b=1):
    return a + b


@pcbatch.batch
def f(n):
    total = 0
    for values in ((n,), (n, 2)):
        total += h(*values)
    return total


f(jnp.array([1, 2, 3]))
