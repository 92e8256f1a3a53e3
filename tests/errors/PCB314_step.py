import jax.numpy as jnp
import pcbatch


@pcbatch.batch
def total(n):
    t = 0
    for i in range(0, n, 0):
        t += i
    for i in range(n / 2):
        t += i
    for i in range(0, n, 0.5):
        t += i
    return t


total(jnp.array([1, 2]))
