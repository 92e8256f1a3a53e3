import jax.numpy as jnp

import pcbatch


def visited(n, visit):
    for k in range(n):
        visit(k)


@pcbatch.batch
def f(n):
    out, seen = [], set()
    visited(n, out.append)
    list(map(seen.add, out))
    return len(seen)


f(jnp.array([1, 2, 3]))
