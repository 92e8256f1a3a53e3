import jax.numpy as jnp

import pcbatch

N = jnp.array([1, 2, 3])

@pcbatch.inline
def down(n):
    return 0 if n < 1 else up(n - 2)


@pcbatch.inline
def up(n):
    return 0 if n < 1 else 1 + down(n + 1)


@pcbatch.batch
def f(n):
    return down(n)


f(N)
