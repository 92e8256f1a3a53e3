import jax.numpy as jnp

import pcbatch

N = jnp.array([1, 2, 3])


@pcbatch.batch
def f(d):
    return d["n"] + d["k"][0]


f({"n": N, "k": [3]})
