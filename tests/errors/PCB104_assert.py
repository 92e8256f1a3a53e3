import jax.numpy as jnp

import pcbatch

X = jnp.array([1.0, 2.0, 3.0])


@pcbatch.batch
def f(x):
    assert x > 0, "positive"
    return jnp.log(x)


f(X)
