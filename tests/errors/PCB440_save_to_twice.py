import jax.numpy as jnp
import pcbatch


@pcbatch.batch
def down(n):
    while n > 0:
        n -= 1
    return n


down.run(jnp.arange(9), save_to="run.npz", checkpoint="run.npz")
