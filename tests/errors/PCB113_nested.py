import jax.numpy as jnp
import pcbatch


@pcbatch.batch
def doubled(n):
    def twice(x):
        return 2 * x

    n = twice(n)
    del twice
    return n


doubled(jnp.array([1, 2]))
