"""Sums of integers that are exact, or the lane stops."""

from __future__ import annotations

from typing import Any

import jax.numpy as jnp
import numpy as np

from pcbatch.containers.checks import limit
from pcbatch.errors import Refusal

iinfo: Any = jnp.iinfo  # knows the small integers as well; untyped in some releases of JAX


def exact_sum(name: str, numbers: Any) -> Any:
    """Return the sum of integers along one axis; `name` is what the message calls the function.

    The upper and the lower halves of the numbers are added apart, where they have room, so that what the sum carries
    beyond the dtype is seen. That holds for fewer numbers than half a word counts.
    """
    dtype = np.dtype(numbers.dtype)
    bits = dtype.itemsize * 4
    if numbers.size >= 1 << (bits - 1):
        title = f"a checked sum of {dtype.name} takes fewer than {1 << (bits - 1)} numbers"
        raise Refusal("PCB306", title, helps=("add them in a loop, which checks each step",))
    lower = jnp.sum(numbers & ((1 << bits) - 1), dtype=dtype)
    upper = jnp.sum(numbers >> bits, dtype=dtype) + (lower >> bits)
    info = iinfo(dtype)
    fits = (upper >= int(info.min) >> bits) & (upper <= int(info.max) >> bits)
    limit(fits, f"the result of {name} does not fit {dtype.name}")
    return jnp.sum(numbers, dtype=dtype)
