import jax
import jax.numpy as jnp

import pcbatch


@pcbatch.batch
def double(n):
    return n + n


jax.jit(double.profile)(jnp.arange(3))
