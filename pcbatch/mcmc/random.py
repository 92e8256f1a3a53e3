"""Random numbers of a draw by their number: a hash of the draw's key and a counter, in straight-line code.

`jax.random` splits keys, and on a CPU it hashes in a loop of XLA, whose rounds cost more than a small gradient. Here
the hash (Threefry with 20 rounds, as in JAX: Salmon et al. 2011, "Parallel Random Numbers: As Easy as 1, 2, 3") is one
fused kernel, and nothing is split: a draw's n-th number is a function of its key and n.
"""

from __future__ import annotations

import jax
import jax.numpy as jnp

from pcbatch.lowering.jaxpr_passes.unroll_threefry import PARITY, ROTATIONS


def threefry(key: jax.Array, first: jax.Array, second: jax.Array) -> tuple[jax.Array, jax.Array]:
    """Two words of 32 random bits for the counter (`first`, `second`), of which a key of two words makes a stream."""
    schedule = (key[0], key[1], key[0] ^ key[1] ^ jnp.uint32(PARITY))
    x, y = first + schedule[0], second + schedule[1]
    for group in range(5):
        for rotation in ROTATIONS[group % 2]:
            x = x + y
            y = (y << rotation) | (y >> (32 - rotation))
            y = x ^ y
        x = x + schedule[(group + 1) % 3]
        y = y + schedule[(group + 2) % 3] + jnp.uint32(group + 1)
    return x, y


def uniform(key: jax.Array, purpose: int, number: jax.Array, dtype: jnp.dtype) -> jax.Array:
    """A number between 0 and 1, neither included.

    Args:
        key: uint32[2], of a draw.
        purpose: which of the draw's streams it is from.
        number: an integer, the place in that stream.
        dtype: float32 or float64.
    """
    high, low = threefry(key, jnp.asarray(number, jnp.uint32), jnp.uint32(purpose))
    if dtype == jnp.float64:
        return ((high >> 5).astype(dtype) * 2.0**26 + (low >> 6).astype(dtype) + 0.5) * 2.0**-53
    return ((high >> 8).astype(dtype) + 0.5) * 2.0**-24
