import jax
import jax.numpy as jnp
import pcbatch


@pcbatch.batch(max_memory="much")
def double(n):
    return 2 * n
