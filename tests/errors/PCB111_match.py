import jax.numpy as jnp

import pcbatch

N = jnp.array([1, 2, 3])

@pcbatch.batch
def f(n):
    match n:
        case 1:
            return 10
        case 2:
            return 20


f(N)
