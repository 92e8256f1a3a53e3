"""The builtin `round` of numbers of a lane, as Python rounds: by the exact decimal value, halves to even."""

from __future__ import annotations

import operator
from typing import Any

import jax
import jax.extend.source_info_util
import jax.numpy as jnp
import numpy as np

from pcbatch.frontend.support.math_functions.wide_integers import magnitude, unsigned

jax.extend.source_info_util.register_exclusion(__file__)

finfo: Any = jnp.finfo


def rounded_integer(n: Any, digits: int) -> Any:
    """Return an integer rounded to a power of ten."""
    if digits >= 0:
        return n
    step = 10**-digits
    if step > np.iinfo(n.dtype).max:
        return jnp.zeros_like(n)
    word = magnitude(n)
    size = unsigned(n.dtype).type(step)
    below = word % size
    down = word - below
    up = (below > size - below) | ((below == size - below) & (down // size % 2 == 1))
    result = jnp.where(up, down + size, down)
    return jnp.where(n < 0, 0 - result, result).astype(n.dtype)


def rounded_float(x: Any, digits: int) -> Any:
    """Return a float rounded to so many decimal places, the float that is nearest to the decimal number."""
    info = finfo(x.dtype)
    most = 10 if x.dtype.itemsize == 4 else 22  # powers of ten that a float holds exactly
    if digits > most:
        return x if digits > info.precision + 40 else jnp.round(x, digits)
    if digits < 0:
        return _to_power(x, -digits) if -digits <= most else jnp.copysign(0.0, x)
    scale = np.asarray(10.0**digits, x.dtype)
    product, error = _exact_product(x, scale)
    whole = jnp.round(product)
    part = product - whole  # exact; the error decides where it is a half
    whole = jnp.where((part == 0.5) & (error > 0), whole + 1, whole)
    whole = jnp.where((part == -0.5) & (error < 0), whole - 1, whole)
    small = jnp.abs(product) < 2.0 ** (info.nmant + 1)  # beyond, the nearest decimal number is the float itself
    # XLA multiplies by the reciprocal of a constant, which rounds twice; this divisor is none.
    result = jnp.where(small, jnp.copysign(whole / jnp.where(small, scale, 1.0), x), x)
    # The derivative is zero, as that of `jnp.round`.
    return jax.lax.stop_gradient(result)


def _to_power(x: Any, digits: int) -> Any:
    size = float(10**digits)
    below = jnp.fmod(jnp.abs(x), size)
    odd = jnp.fmod(jnp.abs(x), 2 * size) >= size
    up = (below > size - below) | ((below == size - below) & odd)
    result = jnp.copysign(jnp.where(up, jnp.abs(x) + (size - below), jnp.abs(x) - below), x)  # each rounded once
    return jax.lax.stop_gradient(jnp.where(jnp.isfinite(x), result, x))


def _exact_product(x: Any, scale: Any) -> tuple[Any, Any]:
    """Return a product as it is rounded, and the error of rounding, from factors cut in halves by their bits."""
    half = (finfo(x.dtype).nmant + 2) // 2
    product = x * scale
    a, b = _upper(x, half), _upper(jnp.asarray(scale), half)
    c, d = x - a, scale - b
    error = ((a * b - product) + a * d + c * b) + c * d
    return product, jnp.where(jnp.isfinite(product), error, 0.0)


def _upper(x: Any, bits: int) -> Any:
    """Return a float rounded to fewer bits of its fraction, so that the rest has as few."""
    word = jax.lax.bitcast_convert_type(x, unsigned(x.dtype))
    mask = word.dtype.type(~((1 << bits) - 1) & ((1 << (word.dtype.itemsize * 8)) - 1))
    return jax.lax.bitcast_convert_type((word + word.dtype.type(1 << (bits - 1))) & mask, x.dtype)


def known_digits(digits: Any) -> int | None:
    """Return the second argument of `round`; None if it is a value of a lane or no integer."""
    return None if isinstance(digits, jax.core.Tracer) or not hasattr(digits, "__index__") else operator.index(digits)
