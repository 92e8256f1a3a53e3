import jax
import jax.numpy as jnp

import pcbatch

N = jnp.array([1, 2, 3])


@pcbatch.batch
def f(n):
    return n


jax.jit(lambda ns: f.map(ns, progress=print).value)(N)
