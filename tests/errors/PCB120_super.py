import jax.numpy as jnp

import pcbatch

N = jnp.array([1, 2, 3])


class Base:
    @pcbatch.batch
    def f(self, n):
        return n if n > 1 else -n


class Sub(Base):
    @pcbatch.batch
    def f(self, n):
        return super().f(n) + 1


Sub().f(N)
