import jax
import jax.numpy as jnp
import pcbatch


@pcbatch.batch
def down(n):
    while n > 0:
        n -= 1
    return n


N = jnp.arange(9)
jax.jit(lambda n: down(n, save_to="run.npz"))(N)
