import jax
import jax.numpy as jnp
import pcbatch


@pcbatch.batch(max_memory="1MB", max_depth=500)
def total(x, n):
    if n == 0:
        return x
    y = total(x + 1, n - 1)
    return y + x


total(jnp.ones((100, 8)), jnp.arange(100))
