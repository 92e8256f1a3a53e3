import jax.numpy as jnp

import pcbatch

N = jnp.array([1, 2, 3])

class Pair:
    __match_args__ = ("a",)


@pcbatch.batch
def f(n):
    pair = Pair()
    match pair:
        case Pair(a, b):
            return n
        case _:
            return -n


f(N)
