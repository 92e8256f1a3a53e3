import jax.numpy as jnp

import pcbatch

N = jnp.array([1, 2, 3])


@pcbatch.batch
def g(a):
    return a + 1


@pcbatch.batch
def f(n):
    first = sum([g(k) for k in range(3)])
    return first + (lambda k: g(k))(n)


f(N)
