import jax
import jax.numpy as jnp

import pcbatch

N = jnp.array([1, 2, 3])
X = jnp.array([1.0, 2.0, 3.0])


@pcbatch.batch
def f(x, n):
    return jax.lax.add(x, n)


f(X, N)
