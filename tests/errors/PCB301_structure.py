import jax.numpy as jnp

import pcbatch

N = jnp.array([1, 2, 3])


@pcbatch.batch
def f(n):
    state = (n, n)
    while n > 0:
        state = {"n": n}
        n -= 1
    return state


f(N)
