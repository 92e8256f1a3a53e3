import jax
import jax.numpy as jnp

import pcbatch

X = jnp.array([1.0, 2.0, 3.0])


@pcbatch.batch
def energy(x):
    return x * x


@pcbatch.batch
def f(x):
    return jax.grad(energy)(x)


f(X)
