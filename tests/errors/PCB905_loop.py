import jax
import jax.numpy as jnp
import pcbatch


@pcbatch.batch
def count(n):
    steps = 0
    while n != 0:
        n, steps = n - 2, steps + 1
        if n < 0:
            n += 2
    return steps


count(jnp.array([4, 3, 2, 1]), timeout=0.0)
