"""Frames: arrays [depth, lanes, ...] that a lane reads and writes at its own depth.

Writes use out-of-range rows for lanes that do not write, which `mode="drop"` ignores; with unique indices XLA then
updates in place.
"""

from __future__ import annotations

import jax
import jax.numpy as jnp


def write(frames: jax.Array, depth: jax.Array, value: jax.Array, mask: jax.Array) -> jax.Array:
    """frames[depth[lane], lane] = value[lane] for the lanes in `mask`."""
    row = jnp.where(mask, depth, frames.shape[0])
    lanes = jnp.arange(depth.shape[0], dtype=depth.dtype)
    return frames.at[row, lanes].set(value, mode="drop", unique_indices=True)


def read(frames: jax.Array, depth: jax.Array) -> jax.Array:
    """frames[depth[lane], lane]; junk (but in range) where the depth is out of range."""
    lanes = jnp.arange(depth.shape[0], dtype=depth.dtype)
    return frames.at[depth, lanes].get(mode="clip")


def grow(frames: jax.Array, depth: int) -> jax.Array:
    """The same frames with room for `depth` of them."""
    more = jnp.zeros((depth - frames.shape[0], *frames.shape[1:]), frames.dtype)
    return jnp.concatenate([frames, more])
