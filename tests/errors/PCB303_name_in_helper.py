import jax.numpy as jnp

import pcbatch

X = jnp.array([1.0, 2.0, 3.0])


def helper(x):
    return x + offset


@pcbatch.batch
def f(x):
    return helper(x)


f(X)
