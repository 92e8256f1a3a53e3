import jax
import jax.numpy as jnp
import pcbatch


@pcbatch.batch(strategy="local")
def double(n):
    return 2 * n


double.start(jnp.arange(3))
