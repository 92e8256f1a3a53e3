import jax.numpy as jnp

import pcbatch


@pcbatch.batch
def f(n, k):
    count = 0
    while n > 0:
        rest = k
        while rest > n:
            rest = rest // 2
            count = count + 1
        n = n // 10
    return count


n, k = jnp.array([7, 1000, 42]), jnp.array([30, 2, 90])
pcbatch.learn_schedule(f, n, k, seconds=-30)
