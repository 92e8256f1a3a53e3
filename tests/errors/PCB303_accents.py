import jax.numpy as jnp

import pcbatch

VÉCU = jnp.ones((3, 2))


@pcbatch.batch
def f(été):
    größe = jnp.ones((3, 3))
    return jnp.sum(été) + jnp.sum(été @ größe, axis=0)


f(VÉCU)
