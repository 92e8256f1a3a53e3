import jax.numpy as jnp

import pcbatch

N = jnp.array([1, 2, 3])

@pcbatch.batch
def f(n):
    d, xs, m = {"a": n, "b": 1}, jnp.arange(3), n
    del d["a"]
    del m, (xs[0], xs.shape)
    return n


f(N)
