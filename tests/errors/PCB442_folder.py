import jax
import jax.numpy as jnp
import pcbatch


@pcbatch.batch
def down(n):
    while n > 0:
        n -= 1
    return n


N = jnp.arange(9)
down.run(N, save_to="/no/such/folder/run.npz")
