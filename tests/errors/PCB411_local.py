import jax
import jax.numpy as jnp

import pcbatch

N = jnp.array([1, 2, 3])


@pcbatch.batch(strategy="local")
def fib(n):
    return n if n < 2 else fib(n - 1) + fib(n - 2)


jax.jit(fib)(N)
