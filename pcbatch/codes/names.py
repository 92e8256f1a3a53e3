"""Codes 201 to 203 and 209 to 212: names and nested functions."""

from __future__ import annotations

from pcbatch.codes.page import Page

PAGES = (
    Page(
        "PCB201",
        "a variable may be read before it is assigned",
        """
On some path to this line the variable has no value. Python would raise `UnboundLocalError` in the lanes that take this
path; the compiler finds it for all lanes before any runs.
""",
        bad="""
import jax.numpy as jnp
import pcbatch


@pcbatch.batch
def last_even(n):
    for k in range(n):
        if k % 2 == 0:
            found = k
    return found


print(last_even(jnp.array([3, 6])))
""",
        good="""
import jax.numpy as jnp
import pcbatch


@pcbatch.batch
def last_even(n):
    found = -1
    for k in range(n):
        if k % 2 == 0:
            found = k
    return found


print(last_even(jnp.array([3, 6])))
""",
    ),
    Page(
        "PCB202",
        "a name is not defined",
        """
The name is no variable of the function, no variable of a function around it, no global and no builtin. Globals are
looked up when the batched function is called, so they may be defined after it, as in Python.
""",
        bad="""
import jax.numpy as jnp
import pcbatch


@pcbatch.batch
def area(radius):
    return 3.14 * raduis * radius


print(area(jnp.array([1.0, 2.0])))
""",
        good="""
import jax.numpy as jnp
import pcbatch


@pcbatch.batch
def area(radius):
    return 3.14 * radius * radius


print(area(jnp.array([1.0, 2.0])))
""",
    ),
    Page(
        "PCB203",
        "a nested function is bound more than once",
        """
A function defined inside a batched one is no value of a lane: its body is put where it is used. So its name must mean
this one function everywhere.
""",
        bad="""
import jax.numpy as jnp
import pcbatch


@pcbatch.batch
def apply(n):
    step = lambda k: k + 1
    if n > 2:
        step = lambda k: k - 1
    return step(n)


print(apply(jnp.array([1, 5])))
""",
        good="""
import jax.numpy as jnp
import pcbatch


@pcbatch.batch
def apply(n):
    up = lambda k: k + 1
    down = lambda k: k - 1
    if n > 2:
        return down(n)
    return up(n)


print(apply(jnp.array([1, 5])))
""",
    ),
    Page(
        "PCB209",
        "a default or decorator of a nested function reads a local variable",
        """
Python evaluates defaults and decorators where the nested function is defined; the compiler puts the function where it
is used, where the variable may have another value by then. A read in the body has one meaning in both.
""",
        bad="""
import jax.numpy as jnp
import pcbatch


@pcbatch.batch
def shifted(n):
    def shift(k, by=n):
        return k + by

    return shift(1)


print(shifted(jnp.array([1, 2])))
""",
        good="""
import jax.numpy as jnp
import pcbatch


@pcbatch.batch
def shifted(n):
    def shift(k):
        return k + n

    return shift(1)


print(shifted(jnp.array([1, 2])))
""",
    ),
    Page(
        "PCB210",
        "a reserved name",
        """
Names that begin with `__pcbatch__` belong to the compiler: compiled primitives find their support functions there.
""",
        bad="""
import jax.numpy as jnp
import pcbatch


@pcbatch.batch
def double(n):
    __pcbatch__ = n + n
    return __pcbatch__


print(double(jnp.array([1, 2])))
""",
        good="""
import jax.numpy as jnp
import pcbatch


@pcbatch.batch
def double(n):
    twice = n + n
    return twice


print(double(jnp.array([1, 2])))
""",
    ),
    Page(
        "PCB212",
        "a variable may be used after `del`",
        """
On some path to this line the variable has been deleted and not assigned again. Python would raise `UnboundLocalError`
in the lanes that take this path; the compiler finds it for all lanes before any runs.
""",
        bad="""
import jax.numpy as jnp
import pcbatch


@pcbatch.batch
def norm(x):
    squares = x * x
    if x[0] > 0:
        del squares
    return jnp.sqrt(squares.sum())


print(norm(jnp.ones((2, 3))))
""",
        good="""
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
    ),
)
