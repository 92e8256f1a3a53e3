"""Floats as texts of the lane, `str(x)`, `f"{x:.2f}"` and `f"{x:.6g}"`, and texts as floats, with Python's digits.

A float times a power of ten is computed exactly, as a float and the error of rounding it. So the nearest whole number
is certain, and how far it is from the product: of the numbers of decimal places that `str` tries, the first is taken
with which the text is nearer to the float than to its neighbours (Steele and White, "How to print floating-point
numbers accurately", 1990, state this aim; their digits come one by one).
"""

from __future__ import annotations

from functools import reduce
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from pcbatch.data.by_width import by_width
from pcbatch.data.checks import limit, require
from pcbatch.data.columns import iinfo, row, taken
from pcbatch.data.origins import Origin, note
from pcbatch.data.rounding import exact_product, rounded
from pcbatch.data.row_search import first_row
from pcbatch.data.texts.float_digits import MOST, digits_of, digits_of_integer
from pcbatch.data.texts.lane_text import LaneText
from pcbatch.data.texts.quoted import as_quoted
from pcbatch.data.texts.text import joined
from pcbatch.data.texts.text_numbers import grouped, text_of_integer
from pcbatch.data.values import Column, Flag, Index, Num, Value

LEAST, LARGE = 1e-4, 1e16  # `str` shows other floats with an exponent
PLACES = {4: 13, 8: 20}  # decimal places of the longest text of such a float, by the bytes of a float
EXACT = {4: 10, 8: 22}  # the largest power of ten that a float has exactly, by its bytes
EXPONENT = "the text of this float has an exponent, or too many digits"
FIXED = {4: 7, 8: 15}  # decimal places of `f"{x:.15f}"` at most: the power of ten has fewer bits than the float
LARGEST: dict[str, dict[int, int]] = {
    **dict.fromkeys("f%", FIXED),
    "e": {size: most - 1 for size, most in MOST.items()},
    **dict.fromkeys(("g", ""), MOST),
}
"""The largest number that a kind of format may have, `.15` of `f"{x:.15f}"`, by the bytes of a float."""


def has_text(dtype: Any) -> bool:
    """Return whether floats of a dtype have texts in lanes."""
    return np.dtype(dtype) in (np.float32, np.float64)


def shortest(x: Num) -> LaneText:
    """Return `str(x)`: the shortest text that no other float is nearer to; the lane stops for one with an exponent."""
    text, fits = _shortest(x)
    limit(fits, EXPONENT)
    return text


def shortest_of(numbers: Column, n: Index) -> LaneText:
    """Return the rows of the texts of the first `n` floats of an array."""
    texts, fit = jax.vmap(_shortest)(numbers)
    limit(jnp.all(fit | (jnp.arange(numbers.shape[0], dtype=np.int32) >= n)), EXPONENT)
    rows: LaneText = texts
    return rows


def _shortest(x: Num) -> tuple[LaneText, Flag]:
    """Return the shortest text of a float, and whether it is one without an exponent."""
    size = abs(x)
    shown = (size >= LEAST) & (size < min(LARGE, float(_largest(x))))
    fits = (size == 0) | shown | ~jnp.isfinite(x)
    size = jnp.where(shown, size, 0)
    count = PLACES[x.dtype.itemsize] + 1
    exact = min(count - 1, EXACT[x.dtype.itemsize])
    powers = np.array([10.0 ** min(k, exact) for k in range(count)], x.dtype)
    rest = np.array([10.0 ** (k - min(k, exact)) for k in range(count)], x.dtype)
    product, error = exact_product(jnp.full(count, size), powers)
    if exact < count - 1:
        product, more = exact_product(rounded(product), rest)
        error = error * rest + more
    whole = jnp.round(product)
    part = (product - whole) + error
    last = jnp.round(part)
    off = part - last  # how much greater the float is than the decimal number
    above = (jnp.nextafter(size, jnp.inf) - size) / 2
    below = (size - jnp.nextafter(size, 0.0)) / 2
    digits = _word(x)
    found = jnp.argmax((abs(off) < jnp.where(off > 0, below, above) * powers * rest) | (off == 0))
    number = (whole.astype(digits) + last.astype(np.dtype(f"int{digits.itemsize * 8}")).astype(digits))[found]
    places = found.astype(np.int32)
    ten, places = taken(_tens(digits), places), jnp.maximum(places, 1)
    text = _assembled(jnp.signbit(x), number // ten, number % ten, places, PLACES[x.dtype.itemsize])
    return _special(x, text), fits


def fixed(x: Num, places: int, group: str = "") -> LaneText:
    """Return `f"{x:.2f}"` with so many decimal places, `FIXED` at most; with a mark between thousands, if there is one.

    The lane stops for a float whose whole part does not fit an integer.
    """
    size = abs(x)
    fits = size < float(_largest(x))
    limit(fits | ~jnp.isfinite(x), "the whole part of the float has too many digits for its text")
    size = jnp.where(fits, size, 0)
    floor = jnp.floor(size)
    product, error = exact_product(size - floor, np.asarray(10.0**places, x.dtype))
    digits = _word(x)
    whole, part = floor.astype(digits), _to_even(product, error, floor if places == 0 else None).astype(digits)
    carry = part == digits.type(10**places)
    whole, part = whole + carry.astype(digits), jnp.where(carry, digits.type(0), part)
    return _special(x, _assembled(jnp.signbit(x), whole, part, places, places, group))


def fixed_of_integer(n: Num, places: int, group: str = "", scale: int = 1) -> LaneText:
    """Return `f"{scale * n:.2f}"` of an integer, all digits of which are shown, and so many zeros behind the point.

    The lane stops for a product that does not fit the dtype.
    """
    most = int(iinfo(n.dtype).max) // scale
    limit((n <= most) & ((n >= -most) | (scale == 1)), "the whole part of the number has too many digits for its text")
    word = np.dtype(f"uint{n.dtype.itemsize * 8}")
    size = (abs(n).astype(word) if jnp.issubdtype(n.dtype, jnp.signedinteger) else n) * word.type(scale)
    return _assembled(n < 0, size, word.type(0), places, places, group)


def scientific(x: Num, places: int) -> LaneText:
    """Return `f"{x:.6e}"` with so many decimal places, one less than the `MOST` digits at most."""
    number, exponent = _digits(x, places + 1)
    ten = number.dtype.type(10**places)
    text = _assembled(_is_negative(x), number // ten, number % ten, places, places)
    return _special(x, _with_exponent(text, exponent, True))


def general(x: Num, count: int, group: str = "", is_float: bool = False) -> LaneText:
    """Return `f"{x:.6g}"` with so many digits, `MOST` at most, or `f"{x:.6}"`, which shows that `x` is a float."""
    count = max(count, 1)
    number, exponent = _digits(x, count)
    tens = _tens(number.dtype)
    zeros = jnp.sum(number % tens[1:count] == number.dtype.type(0), dtype=np.int32)
    far = (exponent < np.int32(-4)) | (exponent >= np.int32(count - is_float))
    places = jnp.where(far, np.int32(count - 1), np.int32(count - 1) - exponent)
    zeros = jnp.minimum(zeros, places)
    places, number = places - zeros, number // taken(tens, zeros)
    ten = taken(tens, places)
    whole, part = number // ten, number % ten
    if is_float:
        places = jnp.where(far, places, jnp.maximum(places, np.int32(1)))
    text = _assembled(_is_negative(x), whole, part, places, count + 3, group)
    return _special(x, _with_exponent(text, exponent, far))


def _digits(x: Num, count: int) -> tuple[Value, Value]:
    return digits_of(x, count) if jnp.issubdtype(x.dtype, jnp.floating) else digits_of_integer(x, count)


def _is_negative(x: Num) -> Flag:
    return jnp.signbit(x) if jnp.issubdtype(x.dtype, jnp.floating) else x < 0


def _with_exponent(text: LaneText, exponent: Index, shown: Flag) -> LaneText:
    """Return digits with an exponent of two digits, or three, behind them, if it is to be shown."""
    size = abs(exponent)
    long = size >= np.int32(100)
    sign = jnp.where(exponent < np.int32(0), np.int32(ord("-")), np.int32(ord("+")))
    first, second, third = (np.int32(ord("0")) + size // np.int32(ten) % np.int32(10) for ten in (100, 10, 1))
    digits = [jnp.where(long, first, second), jnp.where(long, second, third), third]
    ending = LaneText.made(
        jnp.stack([jnp.asarray(ord("e"), np.int32), sign, *digits]),
        jnp.where(shown, jnp.where(long, np.int32(5), np.int32(4)), np.int32(0)),
    )
    return joined(text, ending, room=text.codes.shape[0] + 5)


def _to_even(product: Num, error: Num, before: Num | None) -> Value:
    """Return a product rounded to a whole number, halves to the even one; `before` is what its parity counts from."""
    whole = jnp.floor(product)
    part = product - whole
    odd = jnp.fmod(whole if before is None else whole + before, 2) == 1
    up = (part > 0.5) | ((part == 0.5) & ((error > 0) | ((error == 0) & odd)))
    return jnp.where(up, whole + 1, whole)


def _word(x: Num) -> Any:
    return np.dtype(f"uint{x.dtype.itemsize * 8}")


def _largest(x: Num) -> Any:
    """The limit of floats whose whole part fits a signed integer."""
    return 2.0 ** (x.dtype.itemsize * 8 - 1)


def _tens(digits: Any) -> Value:
    """The powers of ten as integers; beyond those that fit, what is larger than all digits."""
    most = np.iinfo(digits).max
    return jnp.asarray([min(10**k, int(most)) for k in range(PLACES[digits.itemsize] + 1)], digits)


def _assembled(negative: Flag, whole: Num, part: Num, places: Index, room: int, group: str = "") -> LaneText:
    """Return a text of a sign, whole digits, a point, and the digits of a part that has so many decimal places; without
    any there is no point."""
    minus = LaneText.made(jnp.asarray([ord("-")], np.int32), negative.astype(np.int32))
    head = text_of_integer(whole)
    head = grouped(head, ord(group), 3) if group else head
    text = joined(minus, head, room=1 + head.codes.shape[0])
    if room == 0:
        return text
    index = jnp.clip(places - 1 - jnp.arange(room, dtype=np.int32), 0, PLACES[part.dtype.itemsize])
    digits = (part // taken(_tens(part.dtype), index)) % part.dtype.type(10)
    codes = jnp.concatenate([jnp.asarray([ord(".")], np.int32), digits.astype(np.int32) + ord("0")])
    length = places + 1 if isinstance(places, int) else jnp.where(places > 0, places + 1, 0)
    return joined(text, LaneText.made(codes, length), room=text.codes.shape[0] + room + 1)


def _special(x: Num, text: LaneText) -> LaneText:
    """Return a text, or that of what is no finite float."""
    size = max(4, text.codes.shape[0])
    names = [np.array([ord(c) for c in name.ljust(size)], np.int32) for name in ("nan", "inf", "-inf")]
    codes = jnp.pad(text.codes, (0, size - text.codes.shape[0]))
    codes = jnp.where(jnp.isfinite(x), codes, jnp.where(x > 0, names[1], jnp.where(x < 0, names[2], names[0])))
    return LaneText.made(codes, jnp.where(jnp.isfinite(x), text.length, jnp.where(x < 0, 4, 3)).astype(np.int32))


DIGITS = {4: 9, 8: 19}  # digits that are counted in an integer, by the bytes of a float
FAR = 10**6  # an exponent that no float has


def float_of_text(text: LaneText) -> Value:
    """Return the float that a text shows, as the builtin `float`; the lane raises ValueError if it shows none.

    The lane stops where the digits and the exponent are not those of a float that is found exactly. In 32 bits, digits
    from the tenth on do not count.
    """
    shown = text.strip()
    codes, n = shown.codes, shown.length
    dtype = np.dtype(jnp.result_type(float))
    start = ((n > 0) & _is_sign(codes[0])).astype(np.int32)
    end = first_row(lambda code: (code | 32) == ord("e"), codes, n, start)  # where the exponent begins
    point = first_row(lambda code: code == ord("."), codes, end, start)
    power = end + 1 + ((end + 1 < n) & _is_sign(codes.at[end + 1].get(mode="clip"))).astype(np.int32)
    places = jnp.arange(codes.shape[0], dtype=np.int32)

    def is_wrong(at: tuple[Index, Index]) -> Flag:
        code, place = at
        return ~_is_digit(code) & (place != point) & ((place < end) | (place >= power))

    has_digits = (end - start > (point < end)) & ((end == n) | (power < n))
    good = has_digits & (first_row(is_wrong, (codes, places), n, start) >= n)
    odd = ~good & (first_row(lambda code: (code > 127) | (code == ord("_")), codes, n) < n)
    words = shown.lower()
    named = [words == sign + name for sign in ("", "+", "-") for name in ("inf", "infinity", "nan")]
    limit(~(odd | reduce(jnp.logical_or, named)), "`float` of a text other than digits, a point and an exponent")
    refused, quote = "could not convert string to float: ", LaneText.known("'")
    require(good, "ValueError", refused, quote, text, quote, argument=lambda: as_quoted(refused, text))
    digits = np.dtype(f"uint{dtype.itemsize * 8}")
    number, scale, left = _decimal((codes, places), start, jnp.where(good, end, start), point, digits)
    exponent, more, _ = _decimal((codes, places), power, jnp.where(good, n, power), n, digits)
    exponent = jnp.where((more > 0) | (exponent > FAR), FAR, exponent).astype(np.int32)
    scale = scale + jnp.where(codes.at[end + 1].get(mode="clip") == ord("-"), -exponent, exponent)
    most = EXACT[dtype.itemsize]
    fits = (number == 0) | (abs(scale) <= 2 * most)
    limit(fits if dtype.itemsize == 4 else fits & (left == 0), "the float of a text of so many digits")
    upper = number.astype(dtype)
    lower = (number - upper.astype(digits)).astype(np.dtype(f"int{digits.itemsize * 8}")).astype(dtype)
    result, rest = rounded(upper), lower
    for size in (jnp.minimum(abs(scale), most), jnp.clip(abs(scale) - most, 0, most)):
        ten = taken(jnp.asarray([10.0**k for k in range(most + 1)], dtype), size)
        product, error = exact_product(result, ten)
        quotient = rounded(result / ten)
        back, less = exact_product(quotient, ten)
        rest = jnp.where(scale < 0, (((result - back) - less) + rest) / ten, error + rest * ten)
        result = rounded(jnp.where(scale < 0, quotient, product))
    result = result + rest
    return note(jnp.where(codes[0] == ord("-"), -result, result), Origin.NUMBER)


def _is_sign(code: Index) -> Flag:
    return (code == ord("-")) | (code == ord("+"))


def _is_digit(code: Index) -> Flag:
    return (code >= ord("0")) & (code <= ord("9"))


def _decimal(
    at: tuple[Column, Column], start: Index, stop: Index, point: Index, word: Any
) -> tuple[Value, Value, Value]:
    """Return the number that the digits of a range of places make, the power of ten that it is to be multiplied by, and
    how many digits do not count that are not zero.

    `at` has the code and the number of each place; `point` is the place of the point, which is no digit.
    """
    most = word.type(10 ** (DIGITS[word.itemsize] - 1))

    def step(carry: Value, at: tuple[Index, Index], stop: Index) -> Value:
        number, scale, left = carry
        code, place = at
        counts = (place >= start) & (place < stop) & (place != point)
        takes, digit = counts & (number < most), (code - ord("0")).astype(word)
        change = jnp.where(takes & (place > point), -1, jnp.where(counts & ~takes & (place < point), 1, 0))
        lost = (counts & ~takes & (digit > 0)).astype(np.int32)
        return jnp.where(takes, number * word.type(10) + digit, number), scale + change.astype(np.int32), left + lost

    def together(at: tuple[Column, Column], stop: Index) -> Value:
        return jax.lax.scan(lambda c, at: (step(c, at, stop), None), nothing, at)[0]

    def alone(at: tuple[Column, Column], stop: Index) -> Value:
        return jax.lax.fori_loop(start, stop, lambda k, c: step(c, row(at, k), stop), nothing)

    nothing = (jnp.zeros((), word), jnp.zeros((), np.int32), jnp.zeros((), np.int32))
    found: tuple[Value, Value, Value] = by_width(together, alone)(at, stop)
    return found
