import jax
import jax.numpy as jnp
import pcbatch


@pcbatch.batch(max_memory=10_000)
def first(x):
    n = 0
    while x[n] > 0:
        n += 1
    return n


first.map(jnp.zeros((1000, 100)), lanes=10)
