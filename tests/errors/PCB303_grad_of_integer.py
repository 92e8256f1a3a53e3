import jax
import jax.numpy as jnp

import pcbatch

N = jnp.array([1, 2, 3])


@pcbatch.batch
def f(n):
    return jax.grad(lambda k: k * k)(n)


f(N)
