import jax.numpy as jnp

import pcbatch

N = jnp.array([1, 2, 3])


@pcbatch.batch(in_axes=((0, None),))
def f(pair):
    return pair[0]


f((N, N, N))
