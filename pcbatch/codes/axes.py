"""Codes 430 to 432: sizes that are left open, and the axes of results."""

from __future__ import annotations

from pcbatch.codes.page import Page

_TOTAL = """
import jax
import jax.numpy as jnp
import pcbatch


@pcbatch.batch
def total(x):
    return jnp.sum(x)


"""
_GROW = """
import jax.numpy as jnp
import pcbatch


def grow(x, factor):
    while jnp.sum(x) < 10.0:
        x = x * factor
    return x, factor + 1.0


"""

PAGES = (
    Page(
        "PCB430",
        "a symbolic size on another axis than that of the lanes",
        """
`jax.export` can leave sizes open, and so the number of lanes. What one lane holds has a size that is known while
compiling: registers and stacks are made for it.
""",
        bad=_TOTAL
        + """a, b = jax.export.symbolic_shape("a, b")
print(jax.export.export(jax.jit(total))(jax.ShapeDtypeStruct((a, b), jnp.float32)))
""",
        good=_TOTAL
        + """(a,) = jax.export.symbolic_shape("a")
print(jax.export.export(jax.jit(total))(jax.ShapeDtypeStruct((a, 3), jnp.float32)))
""",
    ),
    Page(
        "PCB431",
        "`out_axes` does not fit the result",
        """
`out_axes` says on which axis of each leaf of the result the lanes lie, as in `jax.vmap`: an integer, which may count
from the end, a pytree prefix of the result with integers, or None for what is the same for all lanes.
""",
        bad=_GROW + "print(pcbatch.batch(grow, in_axes=(0, None), out_axes=2)(jnp.ones((4, 3)), 2.0))\n",
        good=_GROW + "print(pcbatch.batch(grow, in_axes=(0, None), out_axes=(1, 0))(jnp.ones((4, 3)), 2.0))\n",
    ),
    Page(
        "PCB432",
        "`out_axes` of None for what may differ between lanes",
        """
None gives a value without lanes, which is right only if it is the same for all of them. As far as is looked, it is if
it is computed of constants and of arguments that lanes share, and assigned where all lanes come together: not after a
branch that they leave in different ways, until they meet again. What a call of a batched function gives may differ.
""",
        bad=_GROW + "print(pcbatch.batch(grow, in_axes=(0, None), out_axes=None)(jnp.ones((4, 3)), 2.0))\n",
        good=_GROW + "print(pcbatch.batch(grow, in_axes=(0, None), out_axes=(0, None))(jnp.ones((4, 3)), 2.0))\n",
    ),
)
