import jax.numpy as jnp

import pcbatch


@pcbatch.batch
def mean(total, count):
    assert count > 0, f"a count of {count}"
    return total / count


mean(jnp.array([6.0, 1.0, 2.0]), jnp.array([3, 0, -1]))
