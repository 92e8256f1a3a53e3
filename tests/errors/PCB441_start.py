import jax
import jax.numpy as jnp
import pcbatch


@pcbatch.batch
def down(n):
    while n > 0:
        n -= 1
    return n


N = jnp.arange(9)
jax.vmap(lambda n: down.start(n).advance().result().value)(N.reshape(3, 3))
