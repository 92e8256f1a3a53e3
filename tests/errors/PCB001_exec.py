import jax.numpy as jnp

import pcbatch

N = jnp.array([1, 2, 3])

namespace = {}
exec("def double(n):\n    return 2 * n", namespace)
pcbatch.batch(namespace["double"])(N)
