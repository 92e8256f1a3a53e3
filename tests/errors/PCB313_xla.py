import jax
import jax.numpy as jnp

import pcbatch

X = jnp.array([1.0, 2.0, 3.0])


def foreign(x):
    return jax.ffi.ffi_call("no_such_target", jax.ShapeDtypeStruct((), jnp.float32), vmap_method="broadcast_all")(x)


@pcbatch.batch
def f(x):
    y = x + 1
    return foreign(y) * 2


f(X)
