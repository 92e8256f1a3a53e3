import functools

import jax
import jax.numpy as jnp
import pcbatch
from tests.programs import elsewhere
from tests.programs.elsewhere import half


def above(x, low):
    return x if x > low else low


def scaled(x):
    return 2.0 * above(x, 1.0)


def factorial(n):
    return 1.0 if n < 1 else n * factorial(n - 1)


class Ramp:
    def rise(self, x):
        return x if x > 0 else 0.0


above_one = functools.partial(above, low=1.0)
positive = lambda x: x if x > 0 else 0.0  # noqa: E731
RAMP = Ramp()


@pcbatch.batch
def several(x):
    inner = lambda v: v if v > x else x  # noqa: E731
    a = scaled(x)
    b = above_one(x)
    c = factorial(x)
    d = RAMP.rise(x)
    e = positive(x)
    f = inner(x)
    g = elsewhere.half(x)
    h = half(x)
    i = jax.lax.map(above_one, jnp.ones(2) * x)
    return a, b, c, d, e, f, g, h, i


several(jnp.array([1.0, 2.0]))
