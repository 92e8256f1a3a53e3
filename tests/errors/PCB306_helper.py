import math

import jax.numpy as jnp
import pcbatch


def digit(x):
    return int(x) % 10


def root(x):
    return math.sqrt(x)


@pcbatch.batch
def first(x):
    a = digit(x)
    b = root(x)
    return a, b


first(jnp.array([12.5, 7.0]))
