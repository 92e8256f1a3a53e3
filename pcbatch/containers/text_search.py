"""The places at which one text of the lane occurs in another."""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np


def places(text: Any, part: Any) -> Any:
    """Return at which places of a text a part begins, bool[capacity + 1]: the last is the end of a full text."""
    size, width = text.codes.shape[0], part.codes.shape[0]
    starts, offsets = jnp.arange(size + 1, dtype=np.int32), jnp.arange(width, dtype=np.int32)
    found = text.codes.at[starts[:, None] + offsets[None]].get(mode="clip") == part.codes[None]
    alike = jnp.all(found | (offsets >= part.length)[None], axis=1)
    return jnp.logical_and(alike, starts + part.length <= text.length)


def count(text: Any, part: Any) -> Any:
    """Return how often a part occurs in a text without overlap, from the left."""
    here = places(text, part)
    if isinstance(part.length, int) and part.length <= 1:
        return jnp.sum(here, dtype=np.int32)

    def step(carry: Any, found: Any) -> Any:
        blocked, total = carry
        taken = jnp.logical_and(found, blocked <= 0)
        return (jnp.where(taken, part.length, blocked) - 1, total + taken.astype(np.int32)), None

    return jax.lax.scan(step, (jnp.int32(0), jnp.int32(0)), here)[0][1]


def among(text: Any, characters: Any) -> Any:
    """Return which characters of a text are some of others, bool[capacity]."""
    width = jnp.arange(characters.codes.shape[0], dtype=np.int32) < characters.length
    return jnp.any((text.codes[:, None] == characters.codes[None]) & width[None], axis=1)
