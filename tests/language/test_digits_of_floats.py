"""Formats of floats by significant digits: `f"{x:.6g}"` and `f"{x:.3e}"`, against those of Python."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import pcbatch
from pcbatch.data.texts import float_digits, float_texts
from tests.language.test_texts_of_floats import texts

COUNT = 6000
ALL = {np.float32: range(1, 10), np.float64: range(1, 18)}


def all_kinds(dtype: Any) -> np.ndarray:
    """Floats of random bits, those about powers of ten and of two, those with a half behind some digits, and others."""
    rng, kind = np.random.default_rng(5), float_digits.KINDS[np.dtype(dtype).itemsize]
    bits = rng.integers(0, 2**kind.bits, COUNT, kind.word, endpoint=False)
    small = rng.integers(0, 1 << kind.fraction, 300).astype(kind.word)
    with np.errstate(over="ignore", under="ignore"):
        tens = np.array([float(f"1e{k}") for k in range(kind.least, kind.most + 1)]).astype(dtype)
        twos = np.ldexp(dtype(1), np.arange(2 - kind.bias - kind.fraction, kind.bias))
        whole = rng.integers(0, 2 ** min(kind.fraction, 40), 500).astype(dtype)
        halves = np.concatenate([(whole + dtype(0.5)) / dtype(2) ** k for k in range(8)])
        near = np.array([float(f"{k}5e{e}") for k in (9.9, 99999.9, 1.2, 9999999.9) for e in range(-6, 12)]).astype(dtype)
        few = (rng.integers(0, 10**5, 500) / 10.0 ** rng.integers(-3, 12, 500)).astype(dtype)
    about = np.concatenate([tens, twos, near])
    about = np.concatenate([about, np.nextafter(about, dtype(0)), np.nextafter(about, dtype(np.inf))])
    special = np.array([0.0, -0.0, np.inf, -np.inf, np.nan, 1, 9.9999995, 0.00001, 123456.5, 999999.5], dtype)
    tiny = np.array([1, 2, 3], kind.word)
    limits = np.array([np.finfo(dtype).max, np.finfo(dtype).tiny], dtype)
    parts = [bits.view(dtype), small.view(dtype), tiny.view(dtype), about, halves, few, special, limits]
    xs = np.concatenate(parts)
    return np.concatenate([xs, -xs[-2000:]])


@pytest.mark.promotion("standard")
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_the_formats_are_those_of_python(dtype: Any) -> None:
    with jax.enable_x64(dtype is np.float64):
        xs = all_kinds(dtype)
        plain = xs.astype(np.float64).tolist()
        for count in ALL[dtype]:
            assert texts(lambda x, n=count: float_texts.general(x, n), xs) == [f"{x:.{count}g}" for x in plain]
            assert texts(lambda x, n=count: float_texts.scientific(x, n - 1), xs) == [
                f"{x:.{count - 1}e}" for x in plain
            ]
            shown = texts(lambda x, n=count: float_texts.general(x, n, is_float=True), xs)
            assert shown == [f"{x:.{count}}" for x in plain]


def nearest(top: int, bottom: int, most: int) -> tuple[int, int]:
    """The least `m * top % bottom` and the least `-m * top % bottom`, for m from 1 to `most`."""
    # Continued fractions: the best m from below and from above, each the sum of the other and itself, many at a time.
    low, high, m_low, m_high = top % bottom, bottom - top % bottom, 1, 1
    while True:
        if low <= high:
            if low == 0:
                return 0, high
            steps = min((high - 1) // low, (most - m_high) // m_low)
            if steps <= 0:
                return low, high
            high, m_high = high - steps * low, m_high + steps * m_low
            if high > low:
                return low, high
        else:
            steps = min((low - 1) // high, (most - m_low) // m_high)
            if steps <= 0:
                return low, high
            low, m_low = low - steps * high, m_low + steps * m_high
            if low > high:
                return low, high
