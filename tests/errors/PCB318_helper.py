import random

import jax.numpy as jnp
import pcbatch


def jitter():
    return random.random()


@pcbatch.batch
def noisy(x):
    return x + jitter()


noisy(jnp.array([1.0, 2.0]))
