import jax
import jax.numpy as jnp

import pcbatch


@pcbatch.batch
def f(x):
    y = x + 1
    return y + 1 / (x - 3)


with jax.debug_infs(True):
    f(jnp.array([1.0, 3.0]))
