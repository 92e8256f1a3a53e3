import jax.numpy as jnp

import pcbatch

N = jnp.array([1, 2, 3])


@pcbatch.batch
def g(a, b=1, *, c=2):
    return a + b + c


@pcbatch.batch
def f(n):
    w = g()
    x = g(n, n, n)
    y = g(n, d=3)
    z = g(n, a=3)
    return w + x + y + z


f(N)
