import jax.numpy as jnp
import numpy as np

import pcbatch

N = jnp.array([1, 2, 3])


@pcbatch.batch(in_axes=(0, None))
def f(n, names):
    return n


f(N, np.array(["a", "b"]))
