import jax.numpy as jnp
import pcbatch


@pcbatch.batch
def digits(n):
    return len(str(n)) + len(f"{n}") + len("%d" % n)


digits(jnp.array([7, 10]))
