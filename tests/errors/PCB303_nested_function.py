import jax
import jax.numpy as jnp

import pcbatch

V = jnp.ones((3, 2))


@pcbatch.batch
def f(v):
    def loss(w):
        return jnp.sum(w @ jnp.ones((3, 3)))

    return jax.grad(loss)(v)


f(V)
