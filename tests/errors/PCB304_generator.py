import jax.numpy as jnp

import pcbatch

N = jnp.array([1, 2, 3])


@pcbatch.batch
def f(n):
    squares = (n * k for k in range(3))
    return sum(squares)


f(N)
