"""Codes 113 to 118: ways to bind and change values that a lane does not have."""

from __future__ import annotations

from pcbatch.codes.page import Page

PAGES = (
    Page(
        "PCB113",
        "only variables can be deleted",
        """
`del x` ends a variable. `del d["k"]` or `del s.field` would change a value in place, and several variables, and other
lanes, may hold it. Make a new value without that part.
""",
        bad="""
import jax.numpy as jnp
import pcbatch


@pcbatch.batch
def total(x):
    parts = {"first": x, "rest": x * x}
    del parts["first"]
    return sum(parts.values())


print(total(jnp.array([1.0, 2.0])))
""",
        good="""
import jax.numpy as jnp
import pcbatch


@pcbatch.batch
def total(x):
    parts = {"first": x, "rest": x * x}
    parts = {k: v for k, v in parts.items() if k != "first"}
    return sum(parts.values())


print(total(jnp.array([1.0, 2.0])))
""",
    ),
    Page(
        "PCB114",
        "`:=` in a comprehension",
        """
A comprehension is plain Python inside one primitive. `:=` in it would assign to a variable of the function around it,
which is storage of the lane. Assign in a statement of its own, or write the loop out.
""",
        bad="""
import jax.numpy as jnp
import pcbatch


@pcbatch.batch
def horner(x):
    total = 0.0
    sums = [total := total * x + c for c in (1.0, 2.0, 3.0)]
    return sums[1], total


print(horner(jnp.array([1.0, 2.0])))
""",
        good="""
import jax.numpy as jnp
import pcbatch


@pcbatch.batch
def horner(x):
    total = 0.0
    sums = []
    for c in (1.0, 2.0, 3.0):
        total = total * x + c
        sums = [*sums, total]
    return sums[1], total


print(horner(jnp.array([1.0, 2.0])))
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
