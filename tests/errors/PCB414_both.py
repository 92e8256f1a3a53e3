import jax
import jax.numpy as jnp
import numpy as np

import pcbatch

N = jnp.array([1, 2, 3])


@pcbatch.batch
def f(n):
    return n


f(N, devices=1, mesh=jax.sharding.Mesh(np.array(jax.devices()[:1]), ("lanes",)))
