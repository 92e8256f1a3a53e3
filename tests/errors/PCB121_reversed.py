import jax.numpy as jnp

import pcbatch

N = jnp.array([1, 2, 3])

@pcbatch.batch
def f(n):
    xs = jnp.arange(3) + n
    for a, b in reversed(zip(xs, xs)):
        n += a * b
    for a in zip(xs, reversed(enumerate(xs))):
        n += a[0]
    for a in reversed(reversed(xs)):
        n += a
    return n


f(N)
