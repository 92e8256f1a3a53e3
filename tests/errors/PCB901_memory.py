import jax
import jax.numpy as jnp
import pcbatch


@pcbatch.batch(max_memory="20kB")
def total(n):
    return 0 if n == 0 else n + total(n - 1)


total(jnp.array([3, 100_000, 12, 99_999]))
