"""Codes 301 to 306: variables, results and primitives of one lane."""

from __future__ import annotations

from pcbatch.codes.page import Page

PAGES = (
    Page(
        "PCB301",
        "a variable changes type",
        """
All lanes share the storage of a variable, whichever way each of them goes, so it has one structure, shape and dtype.
Dtypes are joined as JAX joins them (`0` and `0.5` give a float); shapes and structures cannot be joined.
""",
        bad="""
import jax.numpy as jnp
import pcbatch


@pcbatch.batch
def collect(n):
    found = jnp.zeros(1)
    for k in range(n):
        found = jnp.append(found, k)
    return found


print(collect(jnp.array([1, 3])))
""",
        good="""
import jax.numpy as jnp
import pcbatch


@pcbatch.batch
def collect(n):
    found = jnp.zeros(4)
    for k in range(n):
        found = found.at[k + 1].set(k)
    return found


print(collect(jnp.array([1, 3])))
""",
    ),
    Page(
        "PCB302",
        "a function returns values of different types",
        """
The result of a function has one structure, shape and dtype, whichever `return` gives it: the lanes of a batch are
stacked, and a caller goes on with any of them.
""",
        bad="""
import jax.numpy as jnp
import pcbatch


@pcbatch.batch
def roots(c):
    if c > 0:
        return jnp.array([-1.0, 1.0]) * jnp.sqrt(c)
    return 0.0


print(roots(jnp.array([4.0, -1.0])))
""",
        good="""
import jax.numpy as jnp
import pcbatch


@pcbatch.batch
def roots(c):
    if c > 0:
        return jnp.array([-1.0, 1.0]) * jnp.sqrt(c)
    return jnp.array([0.0, 0.0])


print(roots(jnp.array([4.0, -1.0])))
""",
    ),
    Page(
        "PCB303",
        "an expression fails for one lane",
        """
The expression was traced with the types of one lane, and Python or JAX raised an exception. The message shows it with
these types: a parameter has no lane axis inside the function. Where the exception came from a helper, its line is
shown too.
""",
        bad="""
import jax.numpy as jnp
import pcbatch


@pcbatch.batch
def project(x):
    weights = jnp.ones((3, 3))
    return x @ weights


print(project(jnp.ones((5, 2))))
""",
        good="""
import jax.numpy as jnp
import pcbatch


@pcbatch.batch
def project(x):
    weights = jnp.ones((2, 3))
    return x @ weights


print(project(jnp.ones((5, 2))))
""",
    ),
    Page(
        "PCB304",
        "a value that no lane can hold, or a side effect",
        """
Expressions run while compiling, once for all lanes, and their computation then runs for lanes that are elsewhere too.
So they must not change a list or dict in place, print, call back, or talk to other devices, and what they give must be
made of arrays and numbers if it depends on a lane.
""",
        bad="""
import jax.numpy as jnp
import pcbatch


@pcbatch.batch
def trail(n):
    seen = [n]
    seen += [n + 1]
    return seen[1]


print(trail(jnp.array([1, 2])))
""",
        good="""
import jax.numpy as jnp
import pcbatch


@pcbatch.batch
def trail(n):
    seen = [n]
    seen = [*seen, n + 1]
    return seen[1]


print(trail(jnp.array([1, 2])))
""",
    ),
    Page(
        "PCB305",
        "a helper needs control flow of its own for each lane",
        """
A plain function that a lane calls is traced by JAX, which cannot know which way an `if` in it goes. With
`@pcbatch.inline` a copy of it is put where it is called, with `@pcbatch.batch` it becomes a call per lane: in both,
every lane goes its own way. The same is told of what Python decides by itself: `sorted`, `filter`, the `if` of a
comprehension, `is`.
""",
        bad="""
import jax.numpy as jnp
import pcbatch


def bump(n):
    if n % 2 == 0:
        return n + 1
    return n + 3


@pcbatch.batch
def climb(n):
    while n < 10:
        n = bump(n)
    return n


print(climb(jnp.array([1, 2])))
""",
        good="""
import jax.numpy as jnp
import pcbatch


@pcbatch.batch
def bump(n):
    if n % 2 == 0:
        return n + 1
    return n + 3


@pcbatch.batch
def climb(n):
    while n < 10:
        n = bump(n)
    return n


print(climb(jnp.array([1, 2])))
""",
    ),
    Page(
        "PCB306",
        "a value of a lane where JAX needs a constant",
        """
Shapes, axes, slice bounds and Python integers are part of the compiled program, which is one for all lanes. They may
depend on shapes and on arguments named in `static_argnames`, not on values that differ between lanes.
""",
        bad="""
import jax.numpy as jnp
import pcbatch


@pcbatch.batch
def grid(x, n):
    return x * jnp.arange(n)


print(grid(jnp.array([1.0, 2.0]), jnp.array([4, 4])))
""",
        good="""
import jax.numpy as jnp
import pcbatch


@pcbatch.batch(static_argnames=("n",))
def grid(x, n):
    return x * jnp.arange(n)


print(grid(jnp.array([1.0, 2.0]), 4))
""",
    ),
)
