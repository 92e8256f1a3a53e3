"""Codes 2xx: names, nested functions, and calls of batched functions."""

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
        "PCB204",
        "arguments that do not fit a batched function",
        """
Calls of batched functions are bound to their parameters while compiling, by Python's rules. This call has an argument
too many, lacks one, or names a parameter that does not exist.
""",
        bad="""
import jax.numpy as jnp
import pcbatch


@pcbatch.batch
def power(x, k):
    return x if k == 0 else x * power(x)


print(power(jnp.array([2.0, 3.0]), jnp.array([1, 2])))
""",
        good="""
import jax.numpy as jnp
import pcbatch


@pcbatch.batch
def power(x, k):
    return x if k == 0 else x * power(x, k - 1)


print(power(jnp.array([2.0, 3.0]), jnp.array([1, 2])))
""",
    ),
    Page(
        "PCB205",
        "a call of a batched function unpacks its arguments",
        """
Which argument goes to which parameter must be visible in the call, because every parameter has storage of its own.
""",
        bad="""
import jax.numpy as jnp
import pcbatch


@pcbatch.batch
def gcd(a, b):
    pair = (b, a % b)
    return a if b == 0 else gcd(*pair)


print(gcd(jnp.array([12, 18]), jnp.array([8, 27])))
""",
        good="""
import jax.numpy as jnp
import pcbatch


@pcbatch.batch
def gcd(a, b):
    return a if b == 0 else gcd(b, a % b)


print(gcd(jnp.array([12, 18]), jnp.array([8, 27])))
""",
    ),
    Page(
        "PCB206",
        "a batched function is called inside a nested function or a comprehension",
        """
A nested function or a comprehension is part of one primitive, which JAX traces at once. The call of a batched function
is control flow of the lane and has to stand in its own statements.
""",
        bad="""
import jax.numpy as jnp
import pcbatch


@pcbatch.batch
def depth(n):
    return 0 if n < 2 else 1 + depth(n // 2)


@pcbatch.batch
def total(n):
    return sum([depth(n + k) for k in range(3)])


print(total(jnp.array([1, 9])))
""",
        good="""
import jax.numpy as jnp
import pcbatch


@pcbatch.batch
def depth(n):
    return 0 if n < 2 else 1 + depth(n // 2)


@pcbatch.batch
def total(n):
    found = 0
    for k in range(3):
        found = found + depth(n + k)
    return found


print(total(jnp.array([1, 9])))
""",
    ),
    Page(
        "PCB207",
        "a batched function is used as a value",
        """
Which function a lane calls must be known while compiling. To hand the function of one example to JAX (`jax.grad`,
`jax.vmap`), take `f.plain`.
""",
        bad="""
import jax
import jax.numpy as jnp
import pcbatch


@pcbatch.batch
def energy(x):
    return x * x


@pcbatch.batch
def force(x):
    return -jax.grad(energy)(x)


print(force(jnp.array([1.0, 2.0])))
""",
        good="""
import jax
import jax.numpy as jnp
import pcbatch


@pcbatch.batch
def energy(x):
    return x * x


@pcbatch.batch
def force(x):
    return -jax.grad(energy.plain)(x)


print(force(jnp.array([1.0, 2.0])))
""",
    ),
    Page(
        "PCB208",
        "a batched function is made inside another one",
        """
A batched function is compiled with the functions that call it, and cannot see the variables of one lane of its
caller. Define it outside and pass what it needs.
""",
        bad="""
import jax.numpy as jnp
import pcbatch


@pcbatch.batch
def outer(n):
    @pcbatch.batch
    def inner(k):
        return k + n

    return inner(n)


print(outer(jnp.array([1, 2])))
""",
        good="""
import jax.numpy as jnp
import pcbatch


@pcbatch.batch
def inner(k, n):
    return k + n


@pcbatch.batch
def outer(n):
    return inner(n, n)


print(outer(jnp.array([1, 2])))
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
)
