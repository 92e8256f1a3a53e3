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
        "a lambda cannot be found, or told from others on its line",
        """
Python remembers the line of a lambda, not its place in that line, and not its text. When the line has changed since,
or the compiler cannot tell which of several lambdas on it is meant, it rather asks than take the wrong one. A `def`
has a name to find it by.
""",
        bad="""
import linecache

import jax.numpy as jnp
import pcbatch


def cell(text):
    linecache.cache["<cell>"] = (len(text), None, text.splitlines(True), "<cell>")
    return compile(text, "<cell>", "exec")


names = {}
exec(cell("step = lambda n: n + 1"), names)
cell("# a cell that has changed since")
print(pcbatch.batch(names["step"])(jnp.arange(3)))
""",
        good="""
import jax.numpy as jnp
import pcbatch


def step(n):
    return n + 1


print(pcbatch.batch(step)(jnp.arange(3)))
""",
    ),
)
