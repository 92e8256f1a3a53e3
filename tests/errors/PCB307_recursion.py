import jax.numpy as jnp

import pcbatch

N = jnp.array([1, 2, 3])
V = jnp.ones((3, 2))


@pcbatch.batch
def f(v, n):
    if n == 0:
        return jnp.sum(v)
    return f(jnp.append(v, 1.0), n - 1)


f(V, N)
