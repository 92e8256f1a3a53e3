import jax.numpy as jnp

import pcbatch

N = jnp.array([1, 2, 3])


@pcbatch.batch
def g(a):
    return a + 1


def largest(values):
    return max(values)


@pcbatch.batch
def f(n):
    first = largest(g(k) for k in range(3))
    return first + (lambda k: g(k))(n)


f(N)
