import jax
import jax.numpy as jnp
import pcbatch


@pcbatch.batch
def down(n):
    while n > 0:
        n -= 1
    return n


N = jnp.arange(9)
m = down.start(N)
later = m.advance(1, donate=True)
m.result()
