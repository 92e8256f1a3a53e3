import jax.numpy as jnp

import pcbatch

X = jnp.array([1.0, 2.0])


@pcbatch.batch
def norm(x):
    if x.ndim == 0:
        raise NotImplementedError("scalars")
    return jnp.sqrt(x @ x)


norm(X)
