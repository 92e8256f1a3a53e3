import jax
import jax.numpy as jnp

import pcbatch


@pcbatch.batch
def halvings(n):
    count = 0
    while n > 1:
        n = n // 2
        count = count + 1
    return count


n = jnp.array([7, 1000, 42])


def best(n):
    tuned = halvings.tune(n, seconds=5, schedules=["sweep"], emitters=[], modes=[])
    return halvings.with_options(plan=tuned.plan)(n)


jax.jit(best)(n)
