"""Codes 314 to 317: what loops go over."""

from __future__ import annotations

from pcbatch.codes.page import Page

PAGES = (
    Page(
        "PCB314",
        "a `for` loop over something that it cannot go over",
        """
A loop of a lane counts with integers, goes over the leading axis of an array, or takes one element after the other of
a tuple, a list or a dict. The types of this one say that it does none of these.
""",
        bad="""
import jax.numpy as jnp
import pcbatch


@pcbatch.batch
def total(x):
    found = 0
    for k in range(x):
        found = found + k
    return found


print(total(jnp.array([3.0, 4.0])))
""",
        good="""
import jax.numpy as jnp
import pcbatch


@pcbatch.batch
def total(x):
    found = 0
    for k in range(x.astype(int)):
        found = found + k
    return found


print(total(jnp.array([3.0, 4.0])))
""",
    ),
    Page(
        "PCB315",
        "a loop over a Python object with a length that differs between lanes",
        """
The body of a loop over a tuple or a list is copied for each element, since each may have a type of its own. So how
many there are must be known while compiling; in a `zip` with a range of the lane it is not. The rows of an array have
one type, and a loop over them stays a loop.
""",
        bad="""
import jax.numpy as jnp
import pcbatch


@pcbatch.batch
def paid(n):
    total = 0
    for price, _ in zip((5, 3, 2), range(n)):
        total = total + price
    return total


print(paid(jnp.array([1, 3])))
""",
        good="""
import jax.numpy as jnp
import pcbatch


@pcbatch.batch
def paid(n):
    total = 0
    for price, _ in zip(jnp.array((5, 3, 2)), range(n)):
        total = total + price
    return total


print(paid(jnp.array([1, 3])))
""",
    ),
    Page(
        "PCB317",
        "a function fails on every path",
        """
For the types of this call every way through the function ends in `raise` or a false `assert`: no lane could return.
""",
        bad="""
import jax.numpy as jnp
import pcbatch


@pcbatch.batch
def norm(x):
    if x.ndim == 0:
        raise NotImplementedError("scalars")
    return jnp.sqrt(x @ x)


print(norm(jnp.array([3.0, 4.0])))
""",
        good="""
import jax.numpy as jnp
import pcbatch


@pcbatch.batch
def norm(x):
    if x.ndim == 0:
        return jnp.abs(x)
    return jnp.sqrt(x @ x)


print(norm(jnp.array([3.0, 4.0])))
""",
    ),
    Page(
        "PCB316",
        "a loop would be copied too often",
        """
The body of a loop over a tuple, a list or a dict, and of one under `pcbatch.unroll`, is copied for each element. A
program of thousands of copies would take minutes to compile. Elements of one type fit in an array, over which the
loop stays a loop.
""",
        bad="""
import jax.numpy as jnp
import pcbatch

TABLE = tuple(k * k for k in range(6000))


@pcbatch.batch
def below(n):
    count = 0
    for square in TABLE:
        count = count + (1 if square < n else 0)
    return count


print(below(jnp.array([10, 1000])))
""",
        good="""
import jax.numpy as jnp
import pcbatch

TABLE = tuple(k * k for k in range(6000))


@pcbatch.batch
def below(n):
    count = 0
    for square in jnp.array(TABLE):
        count = count + (1 if square < n else 0)
    return count


print(below(jnp.array([10, 1000])))
""",
    ),
)
