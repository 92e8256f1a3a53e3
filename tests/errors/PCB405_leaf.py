import jax.numpy as jnp

import pcbatch

N = jnp.array([1.0, 2.0, 3.0])
NET = {"weight": jnp.array([0.5, 1.5, 2.5]), "activation": jnp.tanh}


@pcbatch.batch
def f(n, net):
    return net["activation"](net["weight"] * n)


f(N, NET)
