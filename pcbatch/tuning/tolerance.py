"""Whether the result of a candidate is that of the defaults."""

from __future__ import annotations

from typing import Any

import jax
import numpy as np

RELATIVE = {2: 1e-2, 4: 1e-4, 8: 1e-9}  # by the bytes of a real number; bfloat16 and float16 have 2


def difference(ours: Any, theirs: Any, alike: float = 1.0) -> str | None:
    """Return in words how two pytrees differ; None if they agree.

    Integers, booleans and keys agree bit for bit; floating numbers up to rounding, with NaN in the same places.

    Args:
        ours: The result to compare with.
        theirs: The other.
        alike: The least share of the numbers in each array that must agree.
    """
    one: Any = jax.tree.structure(ours)
    if one != jax.tree.structure(theirs):
        return "another structure of the result"
    for a, b in zip(jax.tree.leaves(ours), jax.tree.leaves(theirs), strict=True):
        x, y = _on_host(a), _on_host(b)
        if x.shape != y.shape or x.dtype != y.dtype:
            return f"{y.dtype}{list(y.shape)} instead of {x.dtype}{list(x.shape)}"
        agree = int(np.count_nonzero(_agree(x, y)))
        if agree < alike * x.size:
            return f"{x.size - agree:,} of {x.size:,} numbers differ in {x.dtype}{list(x.shape)}"
    return None


def _agree(x: np.ndarray, y: np.ndarray) -> np.ndarray:
    """bool, for each number whether it is the same in both."""
    if not jax.numpy.issubdtype(x.dtype, np.inexact):
        equal: np.ndarray = x == y
        return equal
    size = x.dtype.itemsize // (2 if jax.numpy.issubdtype(x.dtype, np.complexfloating) else 1)
    wide: Any = np.complex128 if jax.numpy.issubdtype(x.dtype, np.complexfloating) else np.float64
    x, y, near = x.astype(wide), y.astype(wide), RELATIVE[size]
    close: np.ndarray = np.isclose(x, y, rtol=near, atol=near * _scale(x), equal_nan=True)
    return close


def _scale(x: np.ndarray) -> float:
    finite = np.abs(x[np.isfinite(x)])
    return min(1.0, float(finite.max())) if finite.size else 0.0


def _on_host(leaf: Any) -> np.ndarray:
    is_key = hasattr(leaf, "dtype") and jax.numpy.issubdtype(leaf.dtype, jax.dtypes.prng_key)
    return np.asarray(jax.random.key_data(leaf) if is_key else leaf)
