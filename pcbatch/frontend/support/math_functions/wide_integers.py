"""Integer arithmetic whose steps need more bits than a dtype has: products of two words, and the rest of one.

Magnitudes are unsigned, of the width of the signed numbers. A product is two words, high and low; each word is handled
in halves, because no wider type is there.
"""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np


def unsigned(dtype: Any) -> np.dtype[Any]:
    """Return the unsigned dtype of the same width."""
    return np.dtype(f"uint{np.dtype(dtype).itemsize * 8}")


def magnitude(n: Any) -> Any:
    """Return the absolute value as an unsigned number, which holds that of the least number too."""
    word = n.astype(unsigned(n.dtype))
    return jnp.where(n < 0, word.dtype.type(0) - word, word)


def wide_product(a: Any, b: Any) -> tuple[Any, Any]:
    """Return the high and the low word of the product of two unsigned words."""
    bits = a.dtype.itemsize * 4
    mask = a.dtype.type((1 << bits) - 1)
    a1, a0, b1, b0 = a >> bits, a & mask, b >> bits, b & mask
    low = a0 * b0
    first = a1 * b0 + (low >> bits)
    second = a0 * b1 + (first & mask)
    return a1 * b1 + (first >> bits) + (second >> bits), a * b


def rest(high: Any, low: Any, m: Any) -> Any:
    """Return the rest of a number of two words divided by `m`, where `high < m`: long division in half words."""
    width = m.dtype.itemsize * 8
    bits, one = width // 2, m.dtype.type(1)
    mask = m.dtype.type((1 << bits) - 1)
    shift = jax.lax.clz(m)
    up = jnp.where(shift == 0, m.dtype.type(0), (low >> ((width - shift) % width)))
    divisor, number, low = m << shift, (high << shift) | up, low << shift
    d1, d0 = divisor >> bits, divisor & mask
    for digit in (low >> bits, low & mask):
        q, r = number // d1, number % d1
        for _ in range(2):  # the estimate of a digit is at most two too large
            high_enough = (r <= mask) & ((q > mask) | (q * d0 > ((r << bits) | digit)))
            q, r = jnp.where(high_enough, q - one, q), jnp.where(high_enough, r + d1, r)
        number = ((number << bits) | digit) - q * divisor
    return number >> shift


def modular_product(a: Any, b: Any, m: Any) -> Any:
    """Return `a * b % m` for unsigned words below `m`."""
    high, low = wide_product(a, b)
    return rest(high, low, m)


def product_fits(a: Any, b: Any) -> Any:
    """Return whether the product of two signed or two unsigned numbers fits their dtype."""
    high, low = wide_product(magnitude(a), magnitude(b))
    limit = low.dtype.type(np.iinfo(a.dtype).max)
    fits = (high == 0) & (low <= limit)
    if low.dtype == a.dtype:
        return fits
    # The least number has no positive counterpart.
    return fits | ((high == 0) & ((a < 0) != (b < 0)) & (low - limit == 1))
