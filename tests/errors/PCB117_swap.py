import jax.numpy as jnp
import pcbatch


@pcbatch.batch
def swapped(xs, i, j):
    xs[i], xs[j] = xs[j], xs[i]
    xs[i][j] = 0
    xs[j] -= xs[i]
    return xs


swapped(jnp.ones((2, 3)), jnp.array([0, 1]), jnp.array([1, 2]))
