"""Rules of divisions, roundings and conversions: the cases that Triton leaves open come out as XLA defines them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import jax.numpy as jnp
from jax import Array, lax

from pcbatch.runtime.kernel.rules.elementwise import in_float32, is_float
from pcbatch.runtime.kernel.rules.padding import filled, int_info, where
from pcbatch.runtime.kernel.rules.registry import Unsupported, rule

# Of floats that are made of their bits: dtype -> (its bits as signed and as unsigned integers, bits of the mantissa).
PARTS: dict[Any, tuple[Any, Any, int]] = {
    jnp.dtype(jnp.float32): (jnp.int32, jnp.uint32, 23),
    jnp.dtype(jnp.float64): (jnp.int64, jnp.uint64, 52),
}


@rule("div")
@in_float32
def divide(eqn: Any, x: Array, y: Array) -> Sequence[Array]:
    """Divide; integers by zero give -1 (all bits), and the least number by -1 itself."""
    if is_float(x):
        return [lax.div(x, y)]
    zero, one = jnp.zeros_like(y), jnp.ones_like(y)
    by_zero, over = y == zero, _overflows(x, y)
    quotient = lax.div(x, where(by_zero | over, one, y))
    return [where(by_zero, zero - one, quotient)]


@rule("rem")
@in_float32
def remainder(eqn: Any, x: Array, y: Array) -> Sequence[Array]:
    """Return the remainder with the sign of the dividend; integers modulo zero stay as they are."""
    if is_float(x):
        return [fmod(x, y)]
    zero, one = jnp.zeros_like(y), jnp.ones_like(y)
    by_zero = y == zero
    rest = lax.rem(x, where(by_zero | _overflows(x, y), one, y))
    return [where(by_zero, x, rest)]


def _overflows(x: Array, y: Array) -> Array:
    """Whether the quotient does not fit: the least number by -1 (which, divided by one, is the result)."""
    if jnp.issubdtype(x.dtype, jnp.unsignedinteger):
        return jnp.zeros_like(x, jnp.bool_)
    one = jnp.ones_like(x)
    return (x == jnp.full_like(x, int_info(x.dtype).min)) & (y == jnp.zeros_like(y) - one)


def fmod(x: Array, y: Array) -> Array:
    """Compute the exact remainder of floats: long division of the mantissas, as many bits a step as a word has spare.

    Triton's own, x - y * trunc(x / y), loses all digits once the quotient has more than fit.
    """
    signed, unsigned, digits = PARTS[x.dtype]
    width = x.dtype.itemsize * 8
    spare = width - digits - 1

    def c(n: int, dtype: Any = unsigned) -> Array:
        return filled(x.shape, n, dtype)

    xbits, ybits = (lax.bitcast_convert_type(v, unsigned) for v in (x, y))
    sign = xbits & c(1 << (width - 1))
    a, b = xbits ^ sign, ybits & c((1 << (width - 1)) - 1)
    infinite = c((1 << (width - 1 - digits)) - 1 << digits)
    invalid = (a >= infinite) | (b > infinite) | (b == c(0))
    small = a < b  # x itself is the result, also for an infinite y
    (ma, ea), (mb, eb) = _taken_apart(a, digits), _taken_apart(b, digits)
    mb = where(invalid, c(1), mb)
    steps = where(invalid | small, c(0, jnp.int32), ea - eb)

    def turn(state: tuple[Array, Array]) -> tuple[Array, Array]:
        rest, left = state
        now = lax.min(left, c(spare, jnp.int32))
        return lax.rem(rest << now.astype(unsigned), mb), left - now

    def more(state: tuple[Array, Array]) -> Array:
        left = state[1]
        for _ in range(left.ndim):
            left = jnp.max(left, axis=-1)
        return left > 0

    rest, _ = lax.while_loop(more, turn, (lax.rem(ma, mb), steps))
    # Shift the first bit to its place, as far as the exponent allows; the position of that bit is asked of a float.
    top = lax.bitcast_convert_type(rest.astype(signed).astype(x.dtype), signed) >> c(digits, signed)
    up = c(digits, signed) - (top - c((1 << (width - 2 - digits)) - 1, signed))
    up = lax.min(where(rest == c(0), c(0, signed), up), eb.astype(signed) - c(1, signed))
    exponent = eb.astype(signed) - up - c(1, signed)
    found = (exponent.astype(unsigned) << c(digits)) + (rest << up.astype(unsigned))
    found = where(rest == c(0), c(0), found)
    result = lax.bitcast_convert_type(sign | where(small, a, found), x.dtype)
    return where(invalid, jnp.full(x.shape, jnp.nan, x.dtype), result)


def _taken_apart(bits: Array, digits: int) -> tuple[Array, Array]:
    """The mantissa and the exponent of what is not negative; subnormal numbers have exponent 1 and no hidden bit."""
    exponent = (bits >> jnp.full_like(bits, digits)).astype(jnp.int32)
    rest = bits & jnp.full_like(bits, (1 << digits) - 1)
    tiny = exponent == 0
    mantissa = where(tiny, rest, rest | jnp.full_like(bits, 1 << digits))
    return mantissa, where(tiny, jnp.ones_like(exponent), exponent)


@rule("round")
@in_float32
def rounded(eqn: Any, x: Array) -> Sequence[Array]:
    """Round to integers, halves to even or away from zero; the sign of zero is that of the operand."""
    even = int(eqn.params["rounding_method"]) == int(lax.RoundingMethod.TO_NEAREST_EVEN)
    size, half, one = abs(x), jnp.full_like(x, 0.5), jnp.ones_like(x)
    below = lax.floor(size)
    rest = size - below  # exact; NaN if infinite, which compares false
    up = rest > half if even else rest >= half
    if even:
        odd = below - lax.floor(below * half) * jnp.full_like(x, 2.0) == one
        up = up | (rest == half) & odd
    signed, _, _ = PARTS[x.dtype]
    sign = lax.bitcast_convert_type(x, signed) & jnp.full_like(x, int_info(signed).min, signed)
    found = lax.bitcast_convert_type(where(up, below + one, below), signed)
    return [lax.bitcast_convert_type(found | sign, x.dtype)]


@rule("convert_element_type")
def convert(eqn: Any, x: Array) -> Sequence[Array]:
    """Convert; a float outside of the range of integers gives the nearest, and NaN gives 0."""
    return [converted(x, eqn.params["new_dtype"])]


def converted(x: Array, dtype: Any) -> Array:
    """Convert to another type."""
    if is_float(x) and x.dtype.itemsize == 2:
        x = x.astype(jnp.float32)
    if not is_float(x) or not jnp.issubdtype(dtype, jnp.integer):
        return x.astype(dtype)
    info = int_info(dtype)
    low, high = jnp.full_like(x, float(info.min)), jnp.full_like(x, float(info.max + 1))  # powers of two, so exact
    fits = (x >= low) & (x < high)
    inside = where(fits, x, jnp.zeros_like(x)).astype(dtype)
    least, most = filled(x.shape, info.min, dtype), filled(x.shape, info.max, dtype)
    return where(x >= high, most, where(x < low, least, inside))


@rule("reduce_precision")
def reduce_precision(eqn: Any, x: Array) -> Sequence[Array]:
    """Round to the precision of a shorter type."""
    wanted = eqn.params["exponent_bits"], eqn.params["mantissa_bits"]
    bits = {2: (5, 10), 4: (8, 23), 8: (11, 52)}[x.dtype.itemsize] if x.dtype != jnp.bfloat16 else (8, 7)
    if wanted[0] >= bits[0] and wanted[1] >= bits[1]:
        return [x]
    short = {(8, 7): jnp.bfloat16, (5, 10): jnp.float16, (8, 23): jnp.float32}.get(wanted)
    if short is None or jnp.dtype(short).itemsize >= x.dtype.itemsize:
        raise Unsupported(f"a precision of {wanted[0]} bits of exponent and {wanted[1]} of mantissa")
    return [x.astype(short).astype(x.dtype)]


@rule("bitcast_convert_type")
def bitcast(eqn: Any, x: Array) -> Sequence[Array]:
    """Read bits as another type; between widths by shifts of a further last axis."""
    dtype = jnp.dtype(eqn.params["new_dtype"])
    old, new = x.dtype.itemsize, dtype.itemsize
    if x.dtype == dtype:
        return [x]
    if jnp.bool_ in (x.dtype, dtype):
        raise Unsupported("bits of truth values")
    if old == new:
        return [lax.bitcast_convert_type(x, dtype)]
    wide = jnp.uint64 if max(old, new) == 8 else jnp.uint32
    bits = {1: jnp.uint8, 2: jnp.uint16, 4: jnp.uint32, 8: jnp.uint64}
    words = lax.bitcast_convert_type(x, bits[old]).astype(wide)
    if old > new:
        words = jnp.expand_dims(words, -1)
        shape = (*x.shape, old // new)
        by = lax.broadcasted_iota(jnp.int32, shape, len(shape) - 1) * (8 * new)
        words = jnp.broadcast_to(words, shape) >> by.astype(wide)
    else:
        by = lax.broadcasted_iota(jnp.int32, x.shape, x.ndim - 1) * (8 * old)
        words = jnp.sum(words << by.astype(wide), axis=-1, dtype=wide)
    return [lax.bitcast_convert_type(words.astype(bits[new]), dtype)]
