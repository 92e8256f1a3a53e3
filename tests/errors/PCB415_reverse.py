import jax
import jax.numpy as jnp

import pcbatch


@pcbatch.batch(strategy="local")
def grow(x):
    while x < 100.0:
        x = x * 1.5
    return jnp.sin(x)


jax.grad(lambda x: jnp.sum(grow(x)))(jnp.array([1.0, 40.0]))
