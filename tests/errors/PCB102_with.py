import jax
import jax.numpy as jnp

import pcbatch

X = jnp.array([1.0, 2.0, 3.0])


@pcbatch.batch
def f(x):
    with jax.named_scope("step"):
        return x + 1


f(X)
