import dataclasses

import jax
import jax.numpy as jnp

import pcbatch


@dataclasses.dataclass
class Model:
    weight: jax.Array

    @pcbatch.batch
    def f(self, n):
        return n * self.weight


Model(jnp.ones(())).f(jnp.array([1.0, 2.0]))
