import jax.numpy as jnp
import pcbatch


@pcbatch.batch
def middle(a, b, c):
    return sorted([a, b, c])[1]


middle(jnp.array([1]), jnp.array([2]), jnp.array([3]))
