import jax.numpy as jnp
import pcbatch


@pcbatch.batch
def digits(n):
    return len(str(n)) + len(f"{n}") + len("%.1f" % (n / 2))


digits(jnp.array([7, 10]))
