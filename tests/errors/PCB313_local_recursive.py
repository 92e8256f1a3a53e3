import jax
import jax.numpy as jnp
import numpy as np

import pcbatch

X = jnp.array([1.0, 2.0, 3.0])


@pcbatch.batch(strategy="local")
def f(x):
    if x < 1:
        return x
    y = jax.pure_callback(np.round, jax.ShapeDtypeStruct((), jnp.float32), x)
    return f(x - 1) + y


f(X)
