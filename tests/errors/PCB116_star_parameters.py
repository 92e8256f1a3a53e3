import jax.numpy as jnp

import pcbatch

N = jnp.array([1, 2, 3])


@pcbatch.batch
def f(*args, **kwargs):
    return args[0] + kwargs["k"]


f(N, k=N)
