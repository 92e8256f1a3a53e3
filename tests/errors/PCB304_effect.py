import jax
import jax.numpy as jnp

import pcbatch

N = jnp.array([1, 2, 3])


def noisy(n):
    jax.debug.print("n = {}", n)
    return n + 1


@pcbatch.batch
def f(n):
    return noisy(n)


f(N)
