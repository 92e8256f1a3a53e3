"""Codes 119 to 199: expressions and loops that a lane cannot run."""

from __future__ import annotations

from pcbatch.codes.page import Page

PAGES = (
    Page(
        "PCB119",
        "a statement without an effect on the lane",
        """
What a lane does is what it assigns and returns. An expression that stands alone would be computed for nothing, and one
that Python runs for its side effect, such as `items.append(v)` or `print(v)`, would run once while compiling.
""",
        bad="""
import jax.numpy as jnp
import pcbatch


@pcbatch.batch
def pair(n):
    items = [n]
    items.append(n + 1)
    return items[0] * items[1]


print(pair(jnp.array([1, 2])))
""",
        good="""
import jax.numpy as jnp
import pcbatch


@pcbatch.batch
def pair(n):
    items = [n]
    items = [*items, n + 1]
    return items[0] * items[1]


print(pair(jnp.array([1, 2])))
""",
    ),
    Page(
        "PCB120",
        "a builtin that looks at the frame",
        """
`locals`, `vars`, `eval`, `exec` and their like read or change variables by name behind the compiler's back. Name the
variables that are meant.
""",
        bad="""
import jax.numpy as jnp
import pcbatch


@pcbatch.batch
def double(n):
    return eval("n + n")


print(double(jnp.array([1, 2])))
""",
        good="""
import jax.numpy as jnp
import pcbatch


@pcbatch.batch
def double(n):
    return n + n


print(double(jnp.array([1, 2])))
""",
    ),
    Page(
        "PCB121",
        "a call of `range`, `enumerate`, `zip` or `reversed` in a loop that cannot be taken apart",
        """
In the head of a `for` loop these calls become counters and elements by number, so that the loop stays a loop. Their
arguments must be written out, and what is reversed must have a last element: reverse what goes into a `zip`.
""",
        bad="""
import jax.numpy as jnp
import pcbatch


@pcbatch.batch
def dot(a, b):
    total = 0.0
    for x, y in reversed(zip(a, b)):
        total = total + x * y
    return total


print(dot(jnp.ones((2, 3)), jnp.ones((2, 3))))
""",
        good="""
import jax.numpy as jnp
import pcbatch


@pcbatch.batch
def dot(a, b):
    total = 0.0
    for x, y in zip(reversed(a), reversed(b)):
        total = total + x * y
    return total


print(dot(jnp.ones((2, 3)), jnp.ones((2, 3))))
""",
    ),
    Page(
        "PCB122",
        "a class-private name",
        """
Inside a class Python turns `self.__x` into `self._Class__x`. The compiler takes expressions out of the class, where
that would not happen.
""",
        bad="""
import jax.numpy as jnp
import pcbatch


class Scale:
    __factor = 3

    def apply(n):
        return n * Scale.__factor


print(pcbatch.batch(Scale.apply)(jnp.array([1, 2])))
""",
        good="""
import jax.numpy as jnp
import pcbatch


class Scale:
    _factor = 3

    def apply(n):
        return n * Scale._factor


print(pcbatch.batch(Scale.apply)(jnp.array([1, 2])))
""",
    ),
    Page(
        "PCB199",
        "syntax that the compiler does not know",
        """
Only what is known to be compiled rightly is accepted; syntax that came with a later Python is refused until it is.
""",
        bad="""
import jax.numpy as jnp
import pcbatch


@pcbatch.batch
def double(n):
    type Number = int
    return 2 * n


print(double(jnp.array([1, 2])))
""",
        good="""
import jax.numpy as jnp
import pcbatch

Number = int


@pcbatch.batch
def double(n):
    return 2 * n


print(double(jnp.array([1, 2])))
""",
        since=(3, 12),
    ),
)
