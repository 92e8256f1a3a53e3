import jax.numpy as jnp

import pcbatch

N = jnp.array([1, 2, 3])

@pcbatch.batch
def up(n):
    return n + 1 if n > 0 else n


@pcbatch.batch
def down(n):
    return n - 1 if n > 0 else n


@pcbatch.batch
def f(n):
    step = up if n > 1 else down
    for g in (up, down):
        n = g(n)
    return step(n)


f(N)
