import jax
import jax.numpy as jnp

import pcbatch


@pcbatch.batch
def f(n, k):
    while n > 0:
        while k > n:
            k = k // 2
        n = n // 10
    return k


def learn(n):
    return pcbatch.learn_schedule(f, n, jnp.array([30, 2, 90]), episodes=5).states


n = jnp.array([7, 1000, 42])
jax.jit(learn)(n)
