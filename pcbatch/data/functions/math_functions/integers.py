"""Functions of `math` on integers of a lane, and `pow` with a modulus: exact, or the lane stops."""

from __future__ import annotations

import functools
import math
import operator
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from pcbatch.data.checks import limit, require
from pcbatch.data.functions.math_functions.arguments import does_not_fit, iinfo, whole, wholes
from pcbatch.data.origins import Tracer
from pcbatch.data.values import Column, Flag, Index, Num

Pair = tuple[Num, Num]


def isqrt(n: Num) -> Num:
    """The function `math.isqrt`: the square root of a float, and corrected where that was rounded."""
    (n,) = wholes("math.isqrt", n)
    require(n >= 0, "ValueError", "isqrt() argument must be nonnegative")
    word = jnp.maximum(n, 0).astype(unsigned(n.dtype))
    one, largest = word.dtype.type(1), word.dtype.type((1 << (word.dtype.itemsize * 4)) - 1)
    root = jnp.minimum(jnp.sqrt(word.astype(float)).astype(word.dtype), largest)
    for _ in range(2):  # an error of single precision is at most one, that of a number that was rounded may add one
        root = jnp.where(root > word // jnp.maximum(root, one), root - one, root)
        more = jnp.minimum(root + one, largest)
        root = jnp.where(more <= word // jnp.maximum(more, one), more, root)
    return root.astype(n.dtype)


def _fitting(name: str, word: Num, dtype: Any, *fits: Flag) -> Num:
    """Return an unsigned word as a number of a dtype; the lane stops unless it fits."""
    holds = functools.reduce(operator.and_, fits, word <= word.dtype.type(iinfo(dtype).max))
    limit(holds, does_not_fit(name, dtype))
    return word.astype(dtype)


def gcd(*numbers: Num) -> Num:
    """The function `math.gcd` of any number of integers."""
    values = wholes("math.gcd", *numbers)
    words = list(map(magnitude, values))
    return _fitting("math.gcd", functools.reduce(jnp.gcd, words), values[0].dtype)


def lcm(*numbers: Num) -> Num:
    """The function `math.lcm` of any number of integers."""
    values = wholes("math.lcm", *numbers)
    words = list(map(magnitude, values))
    word, fits = words[0], jnp.asarray(True)
    zero = functools.reduce(operator.or_, [other == 0 for other in words])
    for other in words[1:]:
        part = word // jnp.maximum(jnp.gcd(word, other), word.dtype.type(1))
        fits, word = fits & (product_fits(part, other) | zero), part * other
    return _fitting("math.lcm", jnp.where(zero, word.dtype.type(0), word), values[0].dtype, fits)


def factorial(n: Num) -> Num:
    """The function `math.factorial`, from a table of all that fit."""
    (n,) = wholes("math.factorial", n)
    largest = next(k for k in range(40) if math.factorial(k + 1) > iinfo(n.dtype).max)
    require(n >= 0, "ValueError", "factorial() not defined for negative values")
    limit(n <= largest, does_not_fit("math.factorial", n.dtype))
    return jnp.asarray([math.factorial(k) for k in range(largest + 1)], n.dtype)[jnp.clip(n, 0, largest)]


def comb(n: Num, k: Num) -> Num:
    """The function `math.comb`."""
    n, k = _counts("math.comb", n, k)
    word = unsigned(n.dtype).type
    limit = word(iinfo(n.dtype).max)
    steps = next(j for j in range(1, 99) if math.comb(2 * j, j) > iinfo(n.dtype).max)  # as many always overflow
    few = jnp.minimum(k, n - k)

    def step(j: Index, state: Pair) -> Pair:
        # `ways * (n - j + 1) / j`, a whole number, from the quotients and rests of both factors by `j`.
        ways, fits = state
        j = j.astype(word)
        factor = (n.astype(word) + word(1)) - j
        whole, rest = ways // j, ways % j
        quotient, more = whole * factor, rest * (factor // j) + rest * (factor % j) // j
        good = product_fits(whole.astype(n.dtype), factor.astype(n.dtype)) & (quotient <= limit - more) & fits
        return jnp.where(good, quotient + more, ways), good

    one = jnp.ones((), word)
    ways, fits = jax.lax.fori_loop(1, jnp.minimum(few, steps) + 1, step, (one, jnp.asarray(True)))
    fits = fits & (few <= steps)
    return _fitting("math.comb", jnp.where(k <= n, ways, word(0)), n.dtype, fits | (k > n))


def perm(n: Num, k: Num = None) -> Num:
    """The function `math.perm`."""
    if k is None:
        return factorial(n)
    n, k = _counts("math.perm", n, k)
    steps = next(j for j in range(40) if math.factorial(j + 1) > iinfo(n.dtype).max)

    def step(j: Index, state: Pair) -> Pair:
        ways, fits = state
        factor = n - j.astype(n.dtype)
        good = product_fits(ways, factor) & fits
        return jnp.where(good, ways * factor, ways), good

    rounds = jnp.where(k <= n, jnp.minimum(k, steps), 0)
    ways, fits = jax.lax.fori_loop(0, rounds, step, (jnp.ones((), n.dtype), jnp.asarray(True)))
    fits = (fits & (k <= steps)) | (k > n)
    limit(fits, does_not_fit("math.perm", n.dtype))
    return jnp.where(k <= n, ways, 0)


def _counts(name: str, n: Num, k: Num) -> Pair:
    n, k = wholes(name, n, k)
    require(n >= 0, "ValueError", "n must be a non-negative integer")
    require(k >= 0, "ValueError", "k must be a non-negative integer")
    return jnp.maximum(n, 0), jnp.maximum(k, 0)


def exact_product(name: str, numbers: Column) -> Num:
    """Return the product of an array of integers, one axis; the lane stops unless it fits."""

    def step(state: Pair, factor: Num) -> tuple[Pair, None]:
        product, fits = state
        return (product * factor, fits & product_fits(product, factor)), None

    zero = jnp.any(numbers == 0)
    start = (jnp.ones((), numbers.dtype), jnp.asarray(True))
    (product, fits), _ = jax.lax.scan(step, start, jnp.where(zero, 0, numbers))
    limit(fits, does_not_fit(name, numbers.dtype))
    return product


def modular_power(base: Num, exp: Num, mod: Num) -> Num:
    """The builtin `pow` with three arguments, exact for all numbers of the dtype."""
    for value in (base, exp, mod):
        if isinstance(value, float | complex) or (isinstance(value, Tracer) and value.dtype.kind not in "biu"):
            raise TypeError("pow() 3rd argument not allowed unless all arguments are integers")
    known = None if isinstance(exp, Tracer) else operator.index(exp)
    # An exponent beyond the dtype is one of Python, known while compiling.
    base, power, m = wholes("pow", base, 0 if known is not None else exp, mod)
    require(m != 0, "ValueError", "pow() 3rd argument cannot be 0")
    size = jnp.maximum(magnitude(m), 1)
    factor = magnitude(base) % size
    factor = jnp.where((base < 0) & (factor > 0), size - factor, factor)
    if known is None:
        factor = _inverted(factor, size, power < 0)
        digits = _modular_loop(factor, magnitude(power), size)
    else:
        factor = _inverted(factor, size, jnp.asarray(True)) if known < 0 else factor
        digits = _known_power(factor, abs(known), size)
    # The result has the sign of the modulus.
    result = jnp.where((m < 0) & (digits > 0), digits - size, digits)
    return result.astype(m.dtype)


def _known_power(factor: Num, power: int, size: Num) -> Num:
    """Return a power whose exponent, which may be of any size, is known while compiling."""

    def step(result: Num, digit: Num) -> tuple[Num, None]:
        square = modular_product(result, result, size)
        return jnp.where(digit, modular_product(square, factor, size), square), None

    digits = jnp.asarray([digit == "1" for digit in bin(power)[2:]])
    result: Num = jax.lax.scan(step, jnp.ones_like(size) % size, digits)[0]
    return result


def _modular_loop(factor: Num, power: Num, size: Num) -> Num:
    def step(k: Num, state: Pair) -> Pair:
        result, square = state
        taken = (power >> k.astype(power.dtype)) & 1 == 1
        return jnp.where(taken, modular_product(result, square, size), result), modular_product(square, square, size)

    bits = power.dtype.itemsize * 8 - jax.lax.clz(power).astype(np.int32)
    return jax.lax.fori_loop(0, bits, step, (jnp.ones_like(size) % size, factor))[0]


def _inverted(factor: Num, size: Num, asked: Num) -> Num:
    """Return the inverse modulo `size` where it is asked for, by Euclid's algorithm; else the number itself."""
    dtype = size.dtype
    zero, one = jnp.zeros((), dtype), jnp.ones((), dtype)

    def step(state: tuple[Num, ...]) -> tuple[Num, ...]:
        old, new, old_factor, new_factor = state
        q = old // jnp.maximum(new, one)
        product = modular_product(q % size, new_factor, size)
        following = jnp.where(old_factor >= product, old_factor - product, old_factor + (size - product))
        return new, old - q * new, new_factor, following

    start = (size, jnp.where(asked, factor, zero), zero, one % size)
    common, _, inverse, _ = jax.lax.while_loop(lambda state: state[1] > 0, step, start)
    require(~asked | (common == 1), "ValueError", "base is not invertible for the given modulus")
    return jnp.where(asked, inverse, factor)


def bit_length(n: Num) -> Num:
    """The method `n.bit_length()`."""
    n = whole("bit_length", n)
    word = magnitude(n)
    return (n.dtype.itemsize * 8 - jax.lax.clz(word)).astype(n.dtype)


def bit_count(n: Num) -> Num:
    """The method `n.bit_count()`."""
    n = whole("bit_count", n)
    return jax.lax.population_count(magnitude(n)).astype(n.dtype)


# Integer arithmetic whose steps need more bits than a dtype has: products of two words, and the rest of one.
#
# Magnitudes are unsigned, of the width of the signed numbers. A product is two words, high and low; each word is
# handled in halves, because no wider type is there.


def unsigned(dtype: Any) -> np.dtype[Any]:
    """Return the unsigned dtype of the same width."""
    return np.dtype(f"uint{np.dtype(dtype).itemsize * 8}")


def magnitude(n: Num) -> Num:
    """Return the absolute value as an unsigned number, which holds that of the least number too."""
    word = n.astype(unsigned(n.dtype))
    return jnp.where(n < 0, word.dtype.type(0) - word, word)


def wide_product(a: Num, b: Num) -> tuple[Num, Num]:
    """Return the high and the low word of the product of two unsigned words."""
    bits = a.dtype.itemsize * 4
    mask = a.dtype.type((1 << bits) - 1)
    a1, a0, b1, b0 = a >> bits, a & mask, b >> bits, b & mask
    low = a0 * b0
    first = a1 * b0 + (low >> bits)
    second = a0 * b1 + (first & mask)
    return a1 * b1 + (first >> bits) + (second >> bits), a * b


def rest(high: Num, low: Num, m: Num) -> Num:
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


def modular_product(a: Num, b: Num, m: Num) -> Num:
    """Return `a * b % m` for unsigned words below `m`."""
    high, low = wide_product(a, b)
    return rest(high, low, m)


def product_fits(a: Num, b: Num) -> Num:
    """Return whether the product of two signed or two unsigned numbers fits their dtype."""
    high, low = wide_product(magnitude(a), magnitude(b))
    limit = low.dtype.type(np.iinfo(a.dtype).max)
    fits = (high == 0) & (low <= limit)
    if low.dtype == a.dtype:
        return fits
    # The least number has no positive counterpart.
    return fits | ((high == 0) & ((a < 0) != (b < 0)) & (low - limit == 1))
