"""Counts that may pass 2**32, in two words: uint32[..., 2], low word first.

JAX has 64-bit integers only when the user turns them on, and single precision stops counting at 2**24. Written with
operators that NumPy and JAX share; `xp` is one of the two.
"""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np


def zeros(count: int, xp: Any = jnp) -> Any:
    """Return `count` counts of zero, uint32[count, 2]."""
    return xp.zeros((count, 2), xp.uint32)


def widened(small: Any, xp: Any = jnp) -> Any:
    """Return counts below 2**32, integers [...], in two words, uint32[..., 2]."""
    low = small.astype(xp.uint32)
    return xp.stack([low, xp.zeros_like(low)], axis=-1)


def plus(a: Any, b: Any, xp: Any = jnp) -> Any:
    """Return the sum of two arrays of counts, uint32[..., 2]."""
    low = a[..., 0] + b[..., 0]  # modulo 2**32
    carry = (low < a[..., 0]).astype(xp.uint32)
    return xp.stack([low, a[..., 1] + b[..., 1] + carry], axis=-1)


def added(total: jax.Array, index: int, count: jax.Array) -> jax.Array:
    """Return counts uint32[n, 2] with a number below 2**32 (uint32[]) added to the one at `index`."""
    return total.at[index].set(plus(total[index], widened(count)))


def value(total: Any) -> Any:
    """Return counts uint32[..., 2] as numbers [...]: float64 of NumPy, or float32 where JAX traces them."""
    if isinstance(total, jax.core.Tracer):
        low, high = (total[..., k].astype(jnp.float32) for k in (0, 1))
        return low + jnp.float32(2.0**32) * high
    words = np.asarray(total).astype(np.float64)
    return words[..., 0] + 2.0**32 * words[..., 1]


def integer(total: Any) -> Any:
    """Return one count uint32[2] as an `int`, or as int32[] (its low word) where JAX traces it."""
    return total[0].astype(jnp.int32) if isinstance(total, jax.core.Tracer) else int(value(total))
