"""Codes 112 to 118: ways to bind and change values that a lane does not have."""

from __future__ import annotations

from pcbatch.codes.page import Page

PAGES = (
    Page(
        "PCB112",
        "`match` is not supported",
        """
Patterns are matched by Python, on values that it can look at. A value of a lane is known only when the program runs,
so the choice has to be written as a comparison.
""",
        bad="""
import jax.numpy as jnp
import pcbatch


@pcbatch.batch
def points(n):
    match n:
        case 1:
            return 10
        case _:
            return 0


print(points(jnp.array([1, 2])))
""",
        good="""
import jax.numpy as jnp
import pcbatch


@pcbatch.batch
def points(n):
    if n == 1:
        return 10
    else:
        return 0


print(points(jnp.array([1, 2])))
""",
    ),
    Page(
        "PCB113",
        "`del` is not supported",
        """
Storage of a variable is shared by all lanes and is planned before the program runs. A variable that is not read again
takes no space, so `del` has nothing to give.
""",
        bad="""
import jax.numpy as jnp
import pcbatch


@pcbatch.batch
def norm(x):
    squares = x * x
    total = squares.sum()
    del squares
    return jnp.sqrt(total)


print(norm(jnp.ones((2, 3))))
""",
        good="""
import jax.numpy as jnp
import pcbatch


@pcbatch.batch
def norm(x):
    squares = x * x
    total = squares.sum()
    return jnp.sqrt(total)


print(norm(jnp.ones((2, 3))))
""",
    ),
    Page(
        "PCB114",
        "`:=` is not supported",
        """
An expression without control flow becomes one primitive, which gives one value and changes no variable. An assignment
is a statement of its own.
""",
        bad="""
import jax.numpy as jnp
import pcbatch


@pcbatch.batch
def clip(x):
    if (y := x * x) > 10:
        return 10.0
    return y


print(clip(jnp.array([1.0, 5.0])))
""",
        good="""
import jax.numpy as jnp
import pcbatch


@pcbatch.batch
def clip(x):
    y = x * x
    if y > 10:
        return 10.0
    return y


print(clip(jnp.array([1.0, 5.0])))
""",
    ),
    Page(
        "PCB115",
        "a starred target is not supported",
        """
`first, *rest = values` makes a list whose length depends on the value. Take a slice, which says how much it takes.
""",
        bad="""
import jax.numpy as jnp
import pcbatch


@pcbatch.batch
def spread(x):
    first, *rest = x
    return rest[0] - first


print(spread(jnp.arange(6.0).reshape(2, 3)))
""",
        good="""
import jax.numpy as jnp
import pcbatch


@pcbatch.batch
def spread(x):
    first, rest = x[0], x[1:]
    return rest[0] - first


print(spread(jnp.arange(6.0).reshape(2, 3)))
""",
    ),
    Page(
        "PCB116",
        "a parameter `*args` or `**kwargs`",
        """
A batched function has a fixed list of parameters, each with a type. Write them out, or take one tuple or dict.
""",
        bad="""
import jax.numpy as jnp
import pcbatch


@pcbatch.batch
def total(*values):
    return values[0] + values[1]


print(total(jnp.arange(2), jnp.arange(2)))
""",
        good="""
import jax.numpy as jnp
import pcbatch


@pcbatch.batch
def total(values):
    return values[0] + values[1]


print(total((jnp.arange(2), jnp.arange(2))))
""",
    ),
    Page(
        "PCB117",
        "assignment to an element",
        """
JAX arrays cannot be changed in place, and neither can a list or dict of a lane: other lanes are elsewhere in the
program when it happens. `.at[i].set(v)` makes a new array; the compiler turns it into a write in place where it can.
""",
        bad="""
import jax.numpy as jnp
import pcbatch


@pcbatch.batch
def first_to_zero(x):
    x[0] = 0.0
    return x


print(first_to_zero(jnp.ones((2, 3))))
""",
        good="""
import jax.numpy as jnp
import pcbatch


@pcbatch.batch
def first_to_zero(x):
    x = x.at[0].set(0.0)
    return x


print(first_to_zero(jnp.ones((2, 3))))
""",
    ),
    Page(
        "PCB118",
        "assignment to an attribute",
        """
A value of a lane is never changed in place, because several variables, and other lanes, may hold it. Make a new value
that differs in one field.
""",
        bad="""
import typing

import jax.numpy as jnp
import pcbatch


class Point(typing.NamedTuple):
    x: float
    y: float


@pcbatch.batch
def flat(p):
    p.y = 0.0
    return p


print(flat(Point(jnp.ones(2), jnp.ones(2))))
""",
        good="""
import typing

import jax.numpy as jnp
import pcbatch


class Point(typing.NamedTuple):
    x: float
    y: float


@pcbatch.batch
def flat(p):
    p = p._replace(y=0.0)
    return p


print(flat(Point(jnp.ones(2), jnp.ones(2))))
""",
    ),
)
