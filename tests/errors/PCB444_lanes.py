import jax
import jax.numpy as jnp
import pcbatch


@pcbatch.batch(max_memory="1MB")
def walk(n):
    x = jnp.zeros(10_000)
    for i in range(n):
        x = x.at[i].add(1.0)
    return x.sum()


walk(jnp.arange(100))
