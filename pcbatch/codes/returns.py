"""Codes 110 and 111: what a function returns."""

from __future__ import annotations

from pcbatch.codes.page import Page

PAGES = (
    Page(
        "PCB110",
        "a function never returns a value",
        """
The result of a batched call is what its lanes return. A function without `return` gives None in Python, of which no
batch can be made.
""",
        bad="""
import jax.numpy as jnp
import pcbatch


@pcbatch.batch
def halve(n):
    while n > 1:
        n = n // 2


print(halve(jnp.array([7, 8])))
""",
        good="""
import jax.numpy as jnp
import pcbatch


@pcbatch.batch
def halve(n):
    while n > 1:
        n = n // 2
    return n


print(halve(jnp.array([7, 8])))
""",
    ),
    Page(
        "PCB111",
        "a function returns a value on some paths only",
        """
Python returns None where a path ends without `return`, or with an empty one. The lanes of a batch give one kind of
value, so every path has to return one.
""",
        bad="""
import jax.numpy as jnp
import pcbatch


@pcbatch.batch
def sign(x):
    if x > 0:
        return 1
    elif x < 0:
        return -1


print(sign(jnp.array([2.0, 0.0])))
""",
        good="""
import jax.numpy as jnp
import pcbatch


@pcbatch.batch
def sign(x):
    if x > 0:
        return 1
    elif x < 0:
        return -1
    return 0


print(sign(jnp.array([2.0, 0.0])))
""",
    ),
)
