"""The leading decimal digits of a float of the lane, as many as asked for, rounded as CPython rounds them.

    float           its size is `top * 2**(power - bits + 1)`, where the integer `top` has its highest bit set
    power of ten    10**k is at most `limbs * 2**(width - room)`, an integer of `room` bits, rounded up
    product         of both: the whole number in its highest word, and what is behind the point

The product is less than 2**bits units of its lowest bit too great, and its lowest `bits` are left out. So what is a
whole number or a half is found to be one, if no other product of a float is as near to a whole number or a half as what
is left out. None is: `tests/language/test_digits_of_floats.py` finds the nearest one for each power of two and of
ten by continued fractions. (Adams, "Ryu revisited: printf floating point conversion", 2019, has tables for this, too.)
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from pcbatch.data.columns import taken
from pcbatch.data.values import Index, Num, Value

LIMBS = 5  # of a power of ten, each half as wide as the float
LOG = 78913, 18  # of two, to the base ten: floor(78913 * e / 2**18) is floor(log10(2**e)) for the powers of all floats
MOST = {4: 9, 8: 17}  # digits at most, by the bytes of a float: those that tell all floats apart


@dataclass(frozen=True, slots=True)
class Kind:
    """The layout and the range of the floats of one size.

    Attributes:
        bits: bits of a float.
        fraction: bits of its fraction.
        least: the exponent, to the base ten, of the least float that is not zero.
        most: the one of the greatest.
    """

    bits: int
    fraction: int
    least: int
    most: int

    @property
    def bias(self) -> int:
        """The exponent of two that stands for the one of 1.0."""
        return int((1 << (self.bits - self.fraction - 2)) - 1)

    @property
    def word(self) -> Any:
        """The dtype of unsigned integers of the size."""
        return np.dtype(f"uint{self.bits}")


KINDS = {4: Kind(32, 23, -45, 38), 8: Kind(64, 52, -324, 308)}


def digits_of_integer(n: Num, count: int) -> tuple[Value, Value]:
    """Return what `digits_of` gives of a float, of an integer of 32 bits."""
    word = np.dtype(np.uint32)
    size = abs(n).astype(word) if jnp.issubdtype(n.dtype, jnp.signedinteger) else n
    tens = np.array([10**k for k in range(10)], word)
    exponent = jnp.maximum(jnp.sum(size >= tens, dtype=np.int32) - np.int32(1), 0)
    dropped = exponent + np.int32(1 - count)
    ten = taken(jnp.asarray(tens), jnp.abs(dropped))
    number, rest = size // ten, size % ten
    twice = rest + rest  # of nine digits at most
    number += ((twice > ten) | ((twice == ten) & (number % word.type(2) == word.type(1)))).astype(word)
    carried = number == word.type(10**count)
    number = jnp.where(dropped > 0, jnp.where(carried, number // word.type(10), number), size * ten)
    return number, exponent + ((dropped > 0) & carried).astype(np.int32)


def digits_of(x: Num, count: int) -> tuple[Value, Value]:
    """Return the first `count` digits of a float as an integer, rounded, and the exponent of the first of them.

    Halves are rounded to the even digit. Of zero both are 0, and arbitrary of what is no finite number.
    """
    kind = KINDS[x.dtype.itemsize]
    word, half = kind.word, kind.word.type(kind.bits // 2)
    size = jax.lax.bitcast_convert_type(x, word) & word.type((1 << (kind.bits - 1)) - 1)
    one = word.type(kind.bias << kind.fraction)
    # A float is zero by its bits: compilers may take numbers near zero for it.
    sure = jnp.where((size == word.type(0)) | (size >= word.type((2 * kind.bias + 1) << kind.fraction)), one, size)
    top, power = _parts(sure, kind)
    estimate = ((power * np.int32(LOG[0])) >> np.int32(LOG[1])).astype(np.int32)
    borders = jnp.asarray(_borders(kind), word)
    exponent = estimate + (sure >= taken(borders, estimate + np.int32(1 - kind.least))).astype(np.int32)
    limbs, widths = _powers(kind, count)
    place = exponent - np.int32(kind.least)
    ten = [taken(jnp.asarray(column, word), place) for column in limbs]
    product = _product([top & word.type((1 << (kind.bits // 2)) - 1), top >> half], ten, half)
    low = product[2] | product[3] | product[4]  # the limbs 0 and 1 are what is left out
    high = (product[6] << half) | product[5]
    behind = np.int32(kind.bits) - (power + np.int32(1) + taken(jnp.asarray(widths), place))  # bits behind the point
    shift = behind.astype(word)
    whole, rest = high >> shift, high & ((word.type(1) << shift) - word.type(1))
    middle = word.type(1) << (shift - word.type(1))
    more = (rest > middle) | ((rest == middle) & ((low > word.type(0)) | (whole & word.type(1) == word.type(1))))
    number = whole + more.astype(word)
    carry = number == word.type(10**count)
    number = jnp.where(carry, word.type(10 ** (count - 1)), number)
    exponent = exponent + carry.astype(np.int32)
    return jnp.where(size == word.type(0), word.type(0), number), exponent


def _parts(size: Num, kind: Kind) -> tuple[Value, Index]:
    """Return the integer with the highest bit set that has the digits of a float, and the exponent of that bit."""
    word, fraction = kind.word, kind.word.type(kind.fraction)
    exponent = (size >> fraction).astype(np.int32)
    is_normal = exponent > np.int32(0)
    bits = size & word.type((1 << kind.fraction) - 1)
    bits = jnp.where(is_normal, bits | word.type(1 << kind.fraction), bits)
    left = jax.lax.clz(bits)
    lowest = jnp.maximum(exponent, np.int32(1)) - np.int32(kind.bias + kind.fraction)  # the exponent of the last bit
    return bits << left, lowest + np.int32(kind.bits - 1) - left.astype(np.int32)


def _product(top: list[Value], ten: list[Value], half: Any) -> list[Value]:
    """Return the limbs of the product of two integers, the lowest first."""
    mask = (half.dtype.type(1) << half) - half.dtype.type(1)
    product = [half.dtype.type(0)] * (len(top) + len(ten))
    for i, a in enumerate(top):
        carry = half.dtype.type(0)
        for j, b in enumerate(ten):
            column = a * b + product[i + j] + carry
            product[i + j], carry = column & mask, column >> half
        product[i + len(ten)] = carry
    return product


@lru_cache(maxsize=4)
def _borders(kind: Kind) -> np.ndarray:
    """Return the bits of the least float that is not below each power of ten, from that of the least float on."""
    float_ = np.dtype(f"float{kind.bits}").type
    bits = []
    for exponent in range(kind.least, kind.most + 2):
        nearest = float_(f"1e{exponent}") if exponent <= kind.most else float_(np.inf)
        below = exponent <= kind.most and _is_below(nearest, exponent)
        bits.append(int(nearest.view(kind.word)) + int(below))
    return np.array(bits, kind.word)


def _is_below(value: Any, exponent: int) -> bool:
    a, b = value.as_integer_ratio()
    return bool(a * 10 ** max(-exponent, 0) < b * 10 ** max(exponent, 0))


@lru_cache(maxsize=64)
def _powers(kind: Kind, count: int) -> tuple[list[np.ndarray], np.ndarray]:
    """Return the limbs, the lowest first, and the widths of the powers of ten with which floats have `count` digits,
    for the exponents of floats from the least on."""
    room, half = LIMBS * kind.bits // 2, kind.bits // 2
    found = [power_of_ten(count - 1 - exponent, room) for exponent in range(kind.least, kind.most + 1)]
    mask = (1 << half) - 1
    limbs = [np.array([(ten >> (half * j)) & mask for ten, _ in found], kind.word) for j in range(LIMBS)]
    return limbs, np.array([width for _, width in found], np.int32)


def power_of_ten(exponent: int, room: int) -> tuple[int, int]:
    """Return the integer of `room` bits, rounded up, and the width with which 10**exponent is at most
    `integer * 2**(width - room)`."""
    if exponent >= 0:
        width = (10**exponent).bit_length()
        return -(-(10**exponent << room) >> width), width
    divisor = 10**-exponent
    width = 1 - divisor.bit_length()
    return -(-(1 << (room - width)) // divisor), width
