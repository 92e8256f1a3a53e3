"""Codes 101 to 109: statements that a lane cannot run."""

from __future__ import annotations

from pcbatch.codes.page import Page

PAGES = (
    Page(
        "PCB101",
        "`try` is not supported",
        """
All lanes run in one compiled program, in which no exception is raised for one lane alone: there is nothing to catch.
Test beforehand for what would go wrong.
""",
        bad="""
import jax.numpy as jnp
import pcbatch


@pcbatch.batch
def inverse(x):
    try:
        return 1.0 / x
    except ZeroDivisionError:
        return 0.0


print(inverse(jnp.array([2.0, 0.0])))
""",
        good="""
import jax.numpy as jnp
import pcbatch


@pcbatch.batch
def inverse(x):
    if x == 0.0:
        return 0.0
    return 1.0 / x


print(inverse(jnp.array([2.0, 0.0])))
""",
    ),
    Page(
        "PCB102",
        "`with` is not supported",
        """
A context manager is entered and left in Python, while lanes go in and out of a block in the compiled program, each
at its own time. A context that is meant for the computation as a whole belongs around the batched call.
""",
        bad="""
import jax
import jax.numpy as jnp
import pcbatch


@pcbatch.batch
def product(a, b):
    with jax.default_matmul_precision("highest"):
        return a @ b


print(product(jnp.ones((2, 3, 3)), jnp.ones((2, 3, 3))))
""",
        good="""
import jax
import jax.numpy as jnp
import pcbatch


@pcbatch.batch
def product(a, b):
    return a @ b


with jax.default_matmul_precision("highest"):
    print(product(jnp.ones((2, 3, 3)), jnp.ones((2, 3, 3))))
""",
    ),
    Page(
        "PCB103",
        "this form of `raise` is not supported",
        """
A lane raises an exception class with a message: `raise ValueError(f"x is {x}")`. It ends there, and the error of the
call, or `Result.status`, tells of it. There is no exception to raise again or to chain, and no object of one: nothing
in a lane could catch it.
""",
        bad="""
import jax.numpy as jnp
import pcbatch


@pcbatch.batch
def root(x):
    if x < 0:
        raise ValueError("negative") from OverflowError()
    return jnp.sqrt(x)


print(root(jnp.array([4.0, 1.0])))
""",
        good="""
import jax.numpy as jnp
import pcbatch


@pcbatch.batch
def root(x):
    if x < 0:
        raise ValueError("negative")
    return jnp.sqrt(x)


print(root(jnp.array([4.0, 1.0])))
""",
    ),
    Page(
        "PCB105",
        "`yield` is not supported",
        """
A generator stops and goes on as its caller asks; a lane runs to its end and returns once. Collect the values in an
array whose size is known, and return that.
""",
        bad="""
import jax.numpy as jnp
import pcbatch


@pcbatch.batch
def squares(n):
    for k in range(3):
        yield (n + k) ** 2


print(squares(jnp.array([1, 2])))
""",
        good="""
import jax.numpy as jnp
import pcbatch


@pcbatch.batch
def squares(n):
    found = jnp.zeros(3, int)
    for k in range(3):
        found = found.at[k].set((n + k) ** 2)
    return found


print(squares(jnp.array([1, 2])))
""",
    ),
    Page(
        "PCB106",
        "`async` and `await` are not supported",
        """
Lanes do not wait for events; which lane runs next is decided by the compiled program. A batched function is a plain
`def`.
""",
        bad="""
import jax.numpy as jnp
import pcbatch


@pcbatch.batch
async def double(n):
    return 2 * n


print(double(jnp.array([1, 2])))
""",
        good="""
import jax.numpy as jnp
import pcbatch


@pcbatch.batch
def double(n):
    return 2 * n


print(double(jnp.array([1, 2])))
""",
    ),
    Page(
        "PCB107",
        "`global` and `nonlocal` are not supported",
        """
A name outside of the function has one value, while every lane would assign its own. Reading outer names needs no
declaration; what a lane computes is returned.
""",
        bad="""
import jax.numpy as jnp
import pcbatch

total = 0


@pcbatch.batch
def add(n):
    global total
    total = total + n
    return total


print(add(jnp.array([1, 2])))
""",
        good="""
import jax.numpy as jnp
import pcbatch

total = 0


@pcbatch.batch
def add(n):
    new = total + n
    return new


print(add(jnp.array([1, 2])))
""",
    ),
    Page(
        "PCB108",
        "`import` inside a batched function",
        """
An import runs Python code and binds a module, which no lane can hold in a variable. At the top of the file it runs
once, and its names can be used in the function.
""",
        bad="""
import jax.numpy as jnp
import pcbatch


@pcbatch.batch
def circumference(r):
    import math

    return 2 * math.pi * r


print(circumference(jnp.array([1.0, 2.0])))
""",
        good="""
import math

import jax.numpy as jnp
import pcbatch


@pcbatch.batch
def circumference(r):
    return 2 * math.pi * r


print(circumference(jnp.array([1.0, 2.0])))
""",
    ),
    Page(
        "PCB109",
        "`class` inside a batched function",
        """
A class is a Python object, not a value of a lane. Define it outside; instances can be values of a lane when the class
is a pytree, as a `NamedTuple` is.
""",
        bad="""
import typing

import jax.numpy as jnp
import pcbatch


@pcbatch.batch
def extremes(x):
    class Pair(typing.NamedTuple):
        low: float
        high: float

    return x.min() + x.max()


print(extremes(jnp.ones((2, 3))))
""",
        good="""
import typing

import jax.numpy as jnp
import pcbatch


class Pair(typing.NamedTuple):
    low: float
    high: float


@pcbatch.batch
def extremes(x):
    return Pair(x.min(), x.max())


print(extremes(jnp.ones((2, 3))))
""",
    ),
)
