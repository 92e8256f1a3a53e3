import jax.numpy as jnp

import pcbatch

N = jnp.array([1, 2, 3])


class Scale:
    __factor = 3

    def apply(n):
        return n * Scale.__factor


pcbatch.batch(Scale.apply)(N)
