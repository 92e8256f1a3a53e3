import jax.numpy as jnp

import pcbatch


@pcbatch.batch
def double(w):
    return w * 2.0


@pcbatch.batch(in_axes=(0, None), out_axes=(0, None))
def both(x, w):
    return x * w, double(w)


both(jnp.ones(3), 2.0)
