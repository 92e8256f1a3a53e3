import jax.numpy as jnp

import pcbatch


@pcbatch.batch(max_steps=50)
def collatz(n):
    steps = 0
    while n != 1:
        n = n // 2 if n % 2 == 0 else 3 * n + 1
        steps = steps + 1
    return steps


collatz(jnp.array([6, 27, 97]))
