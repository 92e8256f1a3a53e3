import jax
import jax.numpy as jnp

import pcbatch


def grown(x):
    return jax.lax.while_loop(lambda x: x < 10.0, lambda x: 2 * x, x)


@pcbatch.batch
def repeated(x, n):
    while n > 0:
        x, n = grown(x) - 9, n - 1
    return x


jax.grad(lambda x: jnp.sum(repeated(x, jnp.array([1, 3]))))(jnp.array([1.0, 2.0]))
