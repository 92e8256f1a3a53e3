import jax.numpy as jnp
import pcbatch


@pcbatch.batch
def stacked(n):
    items = [n]
    seen = {"first": n}
    items.pop()
    items.sort()
    items.insert(0, n)
    items.extend([n, n])
    seen.update({"second": n})
    return items, seen


stacked(jnp.array([1, 2]))
