import jax
import jax.numpy as jnp

import pcbatch


@pcbatch.batch
def grow(x):
    while x < 100.0:
        x = x * 1.5
    return x


def loss(x):
    return jnp.sum(jnp.sin(grow(x)))


jax.grad(lambda x: jnp.sum(jax.grad(loss)(x)))(jnp.array([1.0, 40.0]))
