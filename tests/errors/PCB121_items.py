import jax.numpy as jnp

import pcbatch

X = jnp.array([1.0, 2.0, 3.0])


@pcbatch.batch
def f(d):
    total = 0.0
    for name, value in d.items():
        total += value
    return total


f({"a": X})
