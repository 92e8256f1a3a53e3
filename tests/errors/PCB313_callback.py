import jax
import jax.numpy as jnp
import numpy as np

import pcbatch

X = jnp.array([1.0, 2.0, 3.0])


@pcbatch.batch
def f(x):
    y = x * 2
    return jax.pure_callback(np.round, jax.ShapeDtypeStruct((), jnp.float32), y)


f(X)
