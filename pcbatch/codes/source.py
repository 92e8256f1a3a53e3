"""Codes 0xx: the source of a function."""

from __future__ import annotations

from pcbatch.codes.page import Page

PAGES = (
    Page(
        "PCB001",
        "the source of a function cannot be found",
        """
The compiler reads the Python text of a function, because only the text has the control flow as it was written.
A function made by `exec` or in some interactive shells has no text that can be found, and a file that was changed
after it was imported no longer fits the function.
""",
        bad="""
import jax.numpy as jnp
import pcbatch

namespace = {}
exec("def double(n):\\n    return 2 * n", namespace)
double = pcbatch.batch(namespace["double"])
print(double(jnp.arange(3)))
""",
        good="""
import jax.numpy as jnp
import pcbatch


@pcbatch.batch
def double(n):
    return 2 * n


print(double(jnp.arange(3)))
""",
    ),
    Page(
        "PCB002",
        "a lambda cannot be told from others on its line",
        """
Python remembers the line of a lambda, not its place in that line. With several lambdas on one line the compiler
compares what else it knows of them, and rather asks than take the wrong one.
""",
        bad="""
import jax.numpy as jnp
import pcbatch

one, two = lambda n: 1 if True else n, lambda n: 2 if True else n
print(pcbatch.batch(one)(jnp.arange(3)))
""",
        good="""
import jax.numpy as jnp
import pcbatch


def one(n):
    return 1 if True else n


print(pcbatch.batch(one)(jnp.arange(3)))
""",
    ),
)
