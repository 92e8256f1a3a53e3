import jax.numpy as jnp

import pcbatch

N = jnp.array([1, 2, 3])


@pcbatch.batch
def f(n, mode):
    return n if mode == "fast" else -n


f(N, "fast")
