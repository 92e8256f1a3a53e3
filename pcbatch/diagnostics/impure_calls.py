"""Random generators outside of JAX and other calls that Python makes once, and what to use in their place."""

from __future__ import annotations

import random

import numpy as np

GENERATORS = (random.Random, np.random.Generator, np.random.RandomState)

_KEY_HELP = "give each lane a key of its own, `jax.random.split(jax.random.key(0), lanes)`, as an argument `key`"
_INTEGER = "jax.random.randint(key, (), low, high)"
_DRAWS = {
    "normal": "jax.random.normal(key)",
    "gauss": "jax.random.normal(key)",
    "randn": "jax.random.normal(key)",
    "standard_normal": "jax.random.normal(key)",
    "randint": _INTEGER,
    "randrange": _INTEGER,
    "integers": _INTEGER,
    "choice": "jax.random.choice(key, jnp.asarray(xs))",
    "shuffle": "jax.random.permutation(key, xs)",
    "permutation": "jax.random.permutation(key, xs)",
}


def key_helps(name: str) -> tuple[str, ...]:
    """What to write for a call of a random function of this name."""
    draw = _DRAWS.get(name.rpartition(".")[2], "jax.random.uniform(key)")
    return (_KEY_HELP, f"draw with `{draw}`; for the next draw make a new key: `key, now = jax.random.split(key)`")


def once(name: str, kind: str) -> tuple[str, tuple[str, ...]]:
    """Title and helps for a call that would run once: `kind` is "random", "clock" or "outside"."""
    title = f"`{name}()` runs once, while compiling: all lanes and iterations would share what it gives or does"
    before = ("call it before the batched function, and pass what it gives as an argument",)
    return title, key_helps(name) if kind == "random" else before
