import jax.numpy as jnp

import pcbatch

N = jnp.array([1, 2, 3])


@pcbatch.batch(in_axes=({"a": "x"},))
def f(d):
    return d["a"]


f({"a": N})
