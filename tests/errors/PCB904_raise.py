import jax.numpy as jnp

import pcbatch


@pcbatch.batch
def root(x):
    if x < 0:
        raise ValueError("no root")
    return jnp.sqrt(x)


root(jnp.array([4.0, -1.0]))
