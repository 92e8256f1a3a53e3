import jax
import jax.numpy as jnp

import pcbatch


def log_gap(a, b):
    gap = a - b
    return jnp.log(gap) * 2


@pcbatch.batch
def f(x, limit):
    while x < limit:
        x = x + 1
    return 1 + log_gap(limit, x)


with jax.debug_nans(True):
    f(jnp.array([0.0, 0.5]), jnp.array([0.0, 3.0]))
