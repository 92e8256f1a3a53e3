import math

import jax.numpy as jnp
import numpy as np

import pcbatch

N = jnp.array([1, 2, 3])
X = jnp.array([1.0, 2.0, 3.0])
V = jnp.ones((3, 2))

TABLE = np.arange(5)


@pcbatch.batch
def f(x, n, v):
    a = jnp.zeros(n)
    b = v[:n]
    c = v[v > 0]
    d = math.sqrt(x)
    e = TABLE[n]
    g = [1, 2, 3][n]
    h = float(n)
    i = jnp.sum(v, axis=n)
    return a, b, c, d, e, g, h, i


f(X, N, V)
