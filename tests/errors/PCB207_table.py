import jax.numpy as jnp

import pcbatch

N = jnp.array([1, 2, 3])


@pcbatch.batch
def up(n):
    return n + 1 if n > 0 else n


@pcbatch.batch
def down(n):
    return n - 1 if n > 0 else n


STEPS = (up, down)
NAMED = {"up": up, "down": down}


@pcbatch.batch
def f(n):
    for step in STEPS:
        n = step(n)
    return NAMED["up"](n) + STEPS[n](n) + [NAMED[name](n) for name in NAMED][0]


f(N)
