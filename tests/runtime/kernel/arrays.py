"""Arrays that tests of rules are run on."""

from __future__ import annotations

from typing import Any

import numpy as np

SPECIAL = [0.0, -0.0, 1.0, -1.0, 0.5, -0.5, 1.5, 2.5, -2.5, np.nan, np.inf, -np.inf, 1e-30, -3e30, 8388609.0, 0.3]


def floats(*shape: int, seed: int = 0) -> np.ndarray:
    return np.random.default_rng(seed).normal(size=shape).astype(np.float32)


def ints(*shape: int, dtype: Any = np.int32, low: int = -60, high: int = 60, seed: int = 0) -> np.ndarray:
    r = np.random.default_rng(seed)
    return r.integers(max(low, int(np.iinfo(dtype).min)), high, shape).astype(dtype)


def odd(*shape: int, seed: int = 0) -> np.ndarray:
    """Floats of which a computation would lose the bits: zeros of both signs, infinities, NaN with a payload."""
    x = floats(*shape, seed=seed).reshape(-1)
    x[::3] = -0.0
    x[1::5] = np.inf
    x[2::7] = np.array([0x7FC01234], np.uint32).view(np.float32)[0]
    return x.reshape(shape)
