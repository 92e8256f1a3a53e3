import datetime
import random
import time

import jax.numpy as jnp
import numpy as np
import pcbatch

GENERATOR = np.random.default_rng(0)


@pcbatch.batch
def noisy(x):
    a = random.random()
    b = np.random.normal()
    c = GENERATOR.integers(3)
    d = time.time()
    e = datetime.datetime.now()
    f = open("numbers.txt")
    g = np.random.default_rng(1)
    return x, a, b, c, d, e, f, g


noisy(jnp.array([1.0, 2.0]))
