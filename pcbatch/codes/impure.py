"""Code 318: what Python draws or reads while compiling."""

from __future__ import annotations

from pcbatch.codes.page import Page

PAGES = (
    Page(
        "PCB318",
        "a random number, the time or a file inside a lane",
        """
Python calls these functions once, while compiling, and what they give would be the same for all lanes and in all
iterations, where the plain function calls them anew. Random numbers of a lane come from a key of `jax.random`; what is
read from outside is read before the batched call, and passed as an argument. A generator that is made with a seed where
it is used, `np.random.default_rng(0).normal(size=3)`, gives the same numbers in plain Python too, and is allowed.
""",
        bad="""
import random

import jax.numpy as jnp
import pcbatch


@pcbatch.batch
def rolls_until(face):
    count = 1
    while random.randint(1, 6) != face:
        count = count + 1
    return count


print(rolls_until(jnp.array([6, 1])))
""",
        good="""
import jax
import jax.numpy as jnp
import pcbatch


@pcbatch.batch
def rolls_until(face, key):
    count = 1
    key, now = jax.random.split(key)
    while jax.random.randint(now, (), 1, 7) != face:
        key, now = jax.random.split(key)
        count = count + 1
    return count


print(rolls_until(jnp.array([6, 1]), jax.random.split(jax.random.key(0), 2)))
""",
    ),
)
