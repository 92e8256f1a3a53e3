import jax.numpy as jnp
import pcbatch


@pcbatch.batch
def digits(n):
    return len(str(n)) + len(f"{n}") + len(str(n * 1j))


digits(jnp.array([7, 10]))
