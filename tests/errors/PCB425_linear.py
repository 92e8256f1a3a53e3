import jax
import jax.numpy as jnp

import pcbatch


@pcbatch.batch
def doubled(x):
    return 2 * x


x = jnp.array([1.0, 2.0])
jax.linear_transpose(doubled, x)(x)
