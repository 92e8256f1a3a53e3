"""Codes 307 to 313: calls, conditions, loops and what cannot be compiled."""

from __future__ import annotations

from pcbatch.codes.page import Page

PAGES = (
    Page(
        "PCB307",
        "an argument has different types in different calls",
        """
Inside one compiled program a function is compiled once, so its parameters have one type in all calls that lanes make,
recursive ones included. (Calls from outside are compiled for their own types.)
""",
        bad="""
import jax.numpy as jnp
import pcbatch


@pcbatch.batch
def total(x, n):
    if n == 0:
        return jnp.sum(x)
    return total(x[1:], n - 1)


print(total(jnp.ones((2, 3)), jnp.array([1, 2])))
""",
        good="""
import jax.numpy as jnp
import pcbatch


@pcbatch.batch
def total(x, n, start):
    if n == 0:
        return jnp.sum(jnp.where(jnp.arange(3) >= start, x, 0.0))
    return total(x, n - 1, start + 1)


print(total(jnp.ones((2, 3)), jnp.array([1, 2]), jnp.array([0, 0])))
""",
    ),
    Page(
        "PCB308",
        "a condition is not a scalar",
        """
A lane goes one way, so a condition is one value. An array of several elements is neither true nor false, in Python
too: say whether all elements must hold or any.
""",
        bad="""
import jax.numpy as jnp
import pcbatch


@pcbatch.batch
def shrink(x):
    while x > 1.0:
        x = x / 2
    return x


print(shrink(jnp.array([[3.0, 8.0], [1.0, 2.0]])))
""",
        good="""
import jax.numpy as jnp
import pcbatch


@pcbatch.batch
def shrink(x):
    while jnp.any(x > 1.0):
        x = x / 2
    return x


print(shrink(jnp.array([[3.0, 8.0], [1.0, 2.0]])))
""",
    ),
    Page(
        "PCB309",
        "a recursion has no base case",
        """
Every path through the function calls a function that never returns, so no lane could ever come to its end, and there
is no type that the result could have.
""",
        bad="""
import jax.numpy as jnp
import pcbatch


@pcbatch.batch
def count(n):
    return 1 + count(n - 1)


print(count(jnp.array([1, 2])))
""",
        good="""
import jax.numpy as jnp
import pcbatch


@pcbatch.batch
def count(n):
    if n <= 0:
        return 0
    return 1 + count(n - 1)


print(count(jnp.array([1, 2])))
""",
    ),
    Page(
        "PCB310",
        "a function never comes to a `return`",
        """
No path leads to a `return`: a loop has no way out. A batch of such lanes would run for ever.
""",
        bad="""
import jax.numpy as jnp
import pcbatch


@pcbatch.batch
def halve(n):
    while True:
        n = n // 2
    return n


print(halve(jnp.array([7, 8])))
""",
        good="""
import jax.numpy as jnp
import pcbatch


@pcbatch.batch
def halve(n):
    while True:
        n = n // 2
        if n < 2:
            break
    return n


print(halve(jnp.array([7, 8])))
""",
    ),
    Page(
        "PCB311",
        "a result that is not made of arrays and numbers",
        """
The results of all lanes are stacked into arrays. Strings, functions and other Python objects cannot be, even if they
are the same for all lanes.
""",
        bad="""
import jax.numpy as jnp
import pcbatch


@pcbatch.batch
def kind(n):
    name = "even"
    return n, name


print(kind(jnp.array([1, 2])))
""",
        good="""
import jax.numpy as jnp
import pcbatch


@pcbatch.batch
def kind(n):
    return n, n % 2


print(kind(jnp.array([1, 2])))
""",
    ),
    Page(
        "PCB312",
        "a number does not fit the dtype of its variable",
        """
A Python number has no size of its own; in a variable of lanes it takes the dtype of the arrays that it meets on other
paths, or the default of JAX. Where it does not fit, JAX would wrap it around or give an infinity.
""",
        bad="""
import jax.numpy as jnp
import pcbatch


@pcbatch.batch
def bounded(n):
    limit = n
    if n < 0:
        limit = 1000
    return limit


print(bounded(jnp.array([3, -1], jnp.int8)))
""",
        good="""
import jax.numpy as jnp
import pcbatch


@pcbatch.batch
def bounded(n):
    limit = n
    if n < 0:
        limit = jnp.int16(1000)
    return limit


print(bounded(jnp.array([3, -1], jnp.int8)))
""",
    ),
    Page(
        "PCB313",
        "an operation that cannot be batched or compiled",
        """
Types are found by tracing one lane. An operation may still lack a rule for batches, or a translation for the back end
at hand, which JAX notices when the whole program is batched and compiled. The line is that of the operation.
""",
        bad="""
import jax
import jax.numpy as jnp
import numpy as np
import pcbatch


@pcbatch.batch
def rounded(x):
    return jax.pure_callback(np.round, jax.ShapeDtypeStruct((), jnp.float32), x)


print(rounded(jnp.array([1.4, 1.6])))
""",
        good="""
import jax.numpy as jnp
import pcbatch


@pcbatch.batch
def rounded(x):
    return jnp.round(x)


print(rounded(jnp.array([1.4, 1.6])))
""",
    ),
)
