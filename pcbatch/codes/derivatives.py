"""Codes 422 to 425: derivatives."""

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

_SINE = """
@jax.{rule}
def sine(x):
    return jnp.sin(x)


sine.{definition}


@pcbatch.batch
def repeated(x, n):
    while n > 0:
        x, n = sine(x), n - 1
    return x


x = jnp.array([1.0, 2.0])
print(jax.jvp(lambda x: repeated(x, jnp.array([1, 3])), (x,), (x,)))
"""
_DOUBLED = """
@pcbatch.batch
def doubled(x):
    while jnp.sum(x) < 100.0:
        x = 2.0 * x
    return x


x = jnp.ones((2, 3))
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
where it is. Inside, where nothing can grow, the gradient is NaN, and this is a warning (`on_failure`).
""",
        bad=_HEAD + _GROW.format(options="(max_tape=2)") + "print(jax.grad(loss)(x))\n",
        good=_HEAD + _GROW.format(options="(max_tape=16)") + "print(jax.jit(jax.grad(loss))(x))\n",
    ),
    Page(
        "PCB424",
        "a step that JAX does not differentiate",
        """
The steps of a lane are differentiated by JAX, and it refuses this one in the mode that was asked for: a function under
`jax.custom_vjp` in forward mode (which second derivatives need too), `jax.lax.while_loop` in reverse mode, a callback
in either. A rule by `jax.custom_jvp` serves both modes, and a loop that is a statement of the batched function is
differentiated by pcbatch.
""",
        bad=_HEAD
        + _SINE.format(
            rule="custom_vjp", definition="defvjp(lambda x: (sine(x), x), lambda x, ct: (ct * jnp.cos(x),))"
        ),
        good=_HEAD + _SINE.format(rule="custom_jvp", definition="defjvps(lambda t, _, x: t * jnp.cos(x))"),
    ),
    Page(
        "PCB425",
        "a batched function under `jax.linear_transpose`",
        """
JAX transposes functions whose every operation it knows to be linear. What a lane does depends on its values, and nobody
can tell whether all of it is linear. The derivative of a linear function is that function, and its pullback the
transpose: ask for that.
""",
        bad=_HEAD + _DOUBLED + "print(jax.linear_transpose(doubled, x)(x))\n",
        good=_HEAD + _DOUBLED + "print(jax.vjp(doubled, x)[1](x))\n",
    ),
)
