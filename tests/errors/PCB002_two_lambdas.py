import jax.numpy as jnp

import pcbatch

N = jnp.array([1, 2, 3])

one, two = lambda n: 1 if True else n, lambda n: 2 if True else n
pcbatch.batch(one)(N)
