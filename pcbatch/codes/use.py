"""Codes 401 to 407, 416, 420 and 421: options and arguments."""

from __future__ import annotations

from pcbatch.codes.page import Page

PAGES = (
    Page(
        "PCB401",
        "an unknown option, or a value that an option does not take",
        """
The options of `pcbatch.batch` and `with_options` are checked when they are given; the message lists what there is.
""",
        bad="""
import pcbatch


@pcbatch.batch(schedule="fastest")
def double(n):
    return n + n
""",
        good="""
import pcbatch


@pcbatch.batch(schedule="earliest")
def double(n):
    return n + n
""",
    ),
    Page(
        "PCB402",
        "arguments that do not fit the signature",
        """
The call has too many or too few arguments, or names one that the function does not have. It is checked by Python's
own rules, before anything is compiled.
""",
        bad="""
import jax.numpy as jnp
import pcbatch


@pcbatch.batch
def add(a, b):
    return a + b


print(add(jnp.arange(3)))
""",
        good="""
import jax.numpy as jnp
import pcbatch


@pcbatch.batch
def add(a, b):
    return a + b


print(add(jnp.arange(3), jnp.arange(3)))
""",
    ),
    Page(
        "PCB403",
        "`static_argnames` or `donate_argnames` names no parameter, or a value cannot be hashed",
        """
A static argument is part of what a program is compiled for. Programs are kept by the values of their static arguments,
which therefore have to be hashable: numbers, strings, tuples, functions. A donated one has arrays that a call may use
up, so it cannot be a constant as well.
""",
        bad="""
import jax.numpy as jnp
import pcbatch


@pcbatch.batch(static_argnames=("shape",))
def fill(x, shape):
    return jnp.full(shape, x)


print(fill(jnp.arange(3), [2, 2]))
""",
        good="""
import jax.numpy as jnp
import pcbatch


@pcbatch.batch(static_argnames=("shape",))
def fill(x, shape):
    return jnp.full(shape, x)


print(fill(jnp.arange(3), (2, 2)))
""",
    ),
    Page(
        "PCB404",
        "`in_axes` does not fit the arguments",
        """
`in_axes` says along which axis of each argument the lanes lie, as in `jax.vmap`: an integer, None for a value that all
lanes share, a tuple with one entry per parameter, or a dict by name.
""",
        bad="""
import jax.numpy as jnp
import pcbatch


@pcbatch.batch(in_axes=(0,))
def scale(x, factor):
    return x * factor


print(scale(jnp.arange(3), 2))
""",
        good="""
import jax.numpy as jnp
import pcbatch


@pcbatch.batch(in_axes=(0, None))
def scale(x, factor):
    return x * factor


print(scale(jnp.arange(3), 2))
""",
    ),
    Page(
        "PCB405",
        "an argument that is not an array",
        """
Lanes hold arrays, numbers, and pytrees of them. A string, a function or another object is the same for all lanes: it
belongs in `static_argnames`, or, as a part of a pytree, has None in its place in `in_axes`.
""",
        bad="""
import jax.numpy as jnp
import pcbatch


@pcbatch.batch
def reduced(x, how):
    if how == "sum":
        return jnp.sum(x)
    return jnp.max(x)


print(reduced(jnp.ones((2, 3)), "sum"))
""",
        good="""
import jax.numpy as jnp
import pcbatch


@pcbatch.batch(static_argnames=("how",))
def reduced(x, how):
    if how == "sum":
        return jnp.sum(x)
    return jnp.max(x)


print(reduced(jnp.ones((2, 3)), "sum"))
""",
    ),
    Page(
        "PCB406",
        "an argument without the axis that lanes lie along",
        """
Every mapped argument holds one value per lane, along axis 0 unless `in_axes` says otherwise. A scalar has no axis at
all: give one value per lane, or say that all lanes share it.
""",
        bad="""
import jax.numpy as jnp
import pcbatch


@pcbatch.batch
def scale(x, factor):
    return x * factor


print(scale(jnp.arange(3), 2))
""",
        good="""
import jax.numpy as jnp
import pcbatch


@pcbatch.batch(in_axes=(0, None))
def scale(x, factor):
    return x * factor


print(scale(jnp.arange(3), 2))
""",
    ),
    Page(
        "PCB407",
        "arguments have different numbers of lanes",
        """
The size of a mapped axis is the number of lanes, and there is one number of lanes in a call. Sizes of 1 are not
broadcast: that would hide mistakes.
""",
        bad="""
import jax.numpy as jnp
import pcbatch


@pcbatch.batch
def add(a, b):
    return a + b


print(add(jnp.arange(3), jnp.arange(1)))
""",
        good="""
import jax.numpy as jnp
import pcbatch


@pcbatch.batch
def add(a, b):
    return a + b


print(add(jnp.arange(3), jnp.broadcast_to(jnp.arange(1), (3,))))
""",
    ),
    Page(
        "PCB416",
        "a text in `modes` that no block has",
        """
`modes={"logp(q)": pcbatch.Strips(32)}` says how the blocks with an expression that contains the text are computed, or
the block of that label. `print(f.explain_schedule(...))` lists all blocks, and what they hold.
""",
        bad="""
import jax.numpy as jnp
import pcbatch


@pcbatch.batch(modes={"n - 3": pcbatch.Dense()})
def down(n):
    while n > 0:
        n = n - 2
    return n


print(down(jnp.arange(3)))
""",
        good="""
import jax.numpy as jnp
import pcbatch


@pcbatch.batch(modes={"n - 2": pcbatch.Dense()})
def down(n):
    while n > 0:
        n = n - 2
    return n


print(down(jnp.arange(3)))
""",
    ),
    Page(
        "PCB420",
        "a policy whose `trip` does not give the carried state",
        """
A policy of your own is given the state of the machine, and returns the state after one trip: what `blocks.visit`,
`run`, `sweep` or `drain` gave, or the `carry` as it was. docs/schedule.md has more.
""",
        bad="""
import jax.numpy as jnp
import pcbatch


class Backwards:
    name = "backwards"

    def trip(self, blocks, carry):
        blocks.sweep(reversed(range(len(blocks))), carry)


@pcbatch.batch(schedule=Backwards())
def down(n):
    while n > 0:
        n = n - 2
    return n


print(down(jnp.arange(3)))
""",
        good="""
import jax.numpy as jnp
import pcbatch


class Backwards:
    name = "backwards"

    def trip(self, blocks, carry):
        return blocks.sweep(reversed(range(len(blocks))), carry)


@pcbatch.batch(schedule=Backwards())
def down(n):
    while n > 0:
        n = n - 2
    return n


print(down(jnp.arange(3)))
""",
    ),
    Page(
        "PCB421",
        "a profile inside of a transformation",
        """
`f.profile(...)` runs the program and makes a table of what was counted. Inside `jax.jit`, and other transformations,
nothing has run yet. There, `stats=True` counts, and `f.run(...)` gives the counts as arrays.
""",
        bad="""
import jax
import jax.numpy as jnp
import pcbatch


@pcbatch.batch
def double(n):
    return n + n


print(jax.jit(double.profile)(jnp.arange(3)))
""",
        good="""
import jax.numpy as jnp
import pcbatch


@pcbatch.batch
def double(n):
    return n + n


print(double.profile(jnp.arange(3)))
""",
    ),
)
