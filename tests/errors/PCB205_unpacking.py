import jax.numpy as jnp

import pcbatch

N = jnp.array([1, 2, 3])

@pcbatch.batch
def g(a, b):
    return a + b


@pcbatch.batch
def f(n):
    one = (n,)
    return g(*one, *one) + g(**{"a": n, "b": n})


f(N)
