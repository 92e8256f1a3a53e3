import jax.numpy as jnp

import pcbatch


@pcbatch.batch
def f(n):
    counts = {}
    for k in range(n):
        counts[k] = k
    numbers, pairs = range(n), counts.items()
    if n > 2:
        counts = 5
        numbers = 6
        pairs = "none"
    return counts, len(numbers), len(pairs)


f(jnp.array([1, 2, 3]))
