import jax.numpy as jnp
import numpy as np

import pcbatch

ROWS = [[1.0, 2.0], [3.0, 4.0]]


@pcbatch.batch
def sizes(n, xs):
    a = jnp.zeros(n)
    b = xs[:n]
    c = xs[xs > 0]
    e = np.sin(xs)
    f = ROWS[n]
    g = jnp.where(xs > 0)
    h = n.item()
    i = {1: 2.0, 3: 4.0}[n]
    j = [k for k in range(n)]
    k = [0.0] * n
    m = xs[n : n + 2]
    p = jnp.sum(xs, axis=n)
    return a, b, c, e, f, g, h, i, j, k, m, p


sizes(jnp.array([1, 2]), jnp.ones((2, 3)))
