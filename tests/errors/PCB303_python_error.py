import jax.numpy as jnp

import pcbatch

V = jnp.ones((3, 2))


@pcbatch.batch
def f(v):
    a, b, c = v
    return a.shap + {"k": b}["q"]


f(V)
