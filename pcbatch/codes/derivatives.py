"""Codes 422 and 423: derivatives."""

from __future__ import annotations

from pcbatch.codes.page import Page

_HEAD = """
import jax
import jax.numpy as jnp
import pcbatch

"""
_GROW = """
@pcbatch.batch{options}
def grow(x):
    while x < 100.0:
        x = x * 1.5
    return jnp.sin(x)


def loss(x):
    return jnp.sum(grow(x))


x = jnp.array([1.0, 40.0])
"""

PAGES = (
    Page(
        "PCB422",
        "reverse mode of what is a derivative already",
        """
The gradient of a batched function undoes a run of the machine, record by record. That is a loop of which JAX knows no
reverse, and pcbatch keeps no tape of it. Forward mode over it works: Hessians and their products with vectors.
""",
        bad=_HEAD + _GROW.format(options="") + "print(jax.grad(lambda x: jnp.sum(jax.grad(loss)(x)))(x))\n",
        good=_HEAD + _GROW.format(options="") + "print(jax.jvp(jax.grad(loss), (x,), (jnp.ones(2),))[1])\n",
    ),
    Page(
        "PCB423",
        "a gradient's tape is full",
        """
A gradient needs a record of every visit of a block. `max_tape` is how many there is room for, of each block and for
each lane on average. Outside `jax.jit` the tape grows by itself where `max_tape` is not set, and this is what it says
where it is. Inside, where nothing can grow, the gradient is NaN.
""",
        bad=_HEAD + _GROW.format(options="(max_tape=2)") + "print(jax.grad(loss)(x))\n",
        good=_HEAD + _GROW.format(options="(max_tape=16)") + "print(jax.jit(jax.grad(loss))(x))\n",
    ),
)
