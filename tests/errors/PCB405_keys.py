import jax.numpy as jnp

import pcbatch

X = jnp.array([1.0, 2.0])


@pcbatch.batch
def f(d):
    return d["a"]


f({1: X, "a": X})
