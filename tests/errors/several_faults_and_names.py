import jax.numpy as jnp

import pcbatch

N = jnp.array([1, 2, 3])


@pcbatch.batch
def g(n):
    n.append(2)
    return n


@pcbatch.batch
def f(n, debug):
    items = [n]
    items.append(cout)
    items[0] = 3
    total = g(n) + lenght(items)
    if debug:
        log(total)
    if n > 3:
        total = total + unknown
    for k in range(n):
        total += k
    if total > 5:
        return total


f(N, N)
