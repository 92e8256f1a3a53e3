import jax
import jax.numpy as jnp

import pcbatch


@pcbatch.batch
def total(x):
    return jnp.sum(x["xs"])


a, b = jax.export.symbolic_shape("a, b")
jax.export.export(jax.jit(total))({"xs": jax.ShapeDtypeStruct((a, b), jnp.float32)})
