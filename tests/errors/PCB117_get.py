import jax.numpy as jnp
import pcbatch


@pcbatch.batch
def counted(n):
    d = {n: [n]}
    d.get(n).append(4)
    d.get(3, [])[0] += 1
    return d


counted(jnp.array([1, 2]))
