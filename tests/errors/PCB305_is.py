import jax.numpy as jnp
import pcbatch


@pcbatch.batch
def seen(xs, x):
    found = False
    for y in xs:
        if x == y:
            found = True
    return 1 if found is True else 0


seen(jnp.array([[1, 2]]), jnp.array([2]))
