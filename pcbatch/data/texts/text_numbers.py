"""Numbers as texts of the lane, and texts as numbers: `str(n)`, `bin(n)`, `int(text, base)`."""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from pcbatch.data.by_width import by_width
from pcbatch.data.checks import limit, require
from pcbatch.data.columns import row
from pcbatch.data.origins import number
from pcbatch.data.row_search import first_row
from pcbatch.data.texts.lane_text import LaneText
from pcbatch.data.texts.quoted import as_quoted
from pcbatch.data.texts.text import joined
from pcbatch.data.values import Column, Index, Num, Value

SHOWN = 200  # characters of a text that `int` refuses, in the text of its error
PREFIXES = {10: "", 2: "0b", 8: "0o", 16: "0x"}


def text_of_integer(n: Num, base: int = 10, prefix: bool = True, upper: bool = False) -> LaneText:
    """Return the digits of an integer of the lane, with its sign."""
    if n.dtype == np.bool_ or n.dtype.itemsize < 4:
        n = n.astype(np.int32)
    bits = n.dtype.itemsize * 8
    unsigned: Any = np.dtype(f"uint{bits}")
    size = abs(n).astype(unsigned) if jnp.issubdtype(n.dtype, jnp.signedinteger) else n
    width = _width(2**bits - 1, base)
    powers = np.array([base**k for k in range(width - 1, -1, -1)], unsigned)
    digits = ((size // powers) % unsigned.type(base)).astype(np.int32)
    count = jnp.maximum(jnp.sum(size >= powers, dtype=np.int32), 1)
    letters = ord("A" if upper else "a") - 10
    codes = jnp.where(digits < 10, digits + ord("0"), digits + letters)
    shown = LaneText.made(jnp.roll(codes, count - width), count)
    start = LaneText.known("-" + (PREFIXES[base] if prefix else ""))
    negative = n < 0
    head = LaneText.made(
        jnp.where(negative, start.codes, jnp.roll(start.codes, -1)), jnp.where(negative, start.length, start.length - 1)
    )
    return joined(head, shown, room=head.codes.shape[0] + width)


def _width(value: int, base: int) -> int:
    """The number of digits of a number."""
    count = 0
    while value:
        count, value = count + 1, value // base
    return count


def grouped(text: LaneText, mark: int, width: int) -> LaneText:
    """Return the digits of an integer, which may have a sign, with a mark before each group of so many."""
    sign = (text.codes[0] == ord("-")).astype(np.int32)
    size = text.codes.shape[0] + (text.codes.shape[0] - 1) // width
    length = text.length + (text.length - sign - 1) // width
    place = jnp.arange(size, dtype=np.int32)
    right = length - 1 - place
    source = jnp.where(place < sign, 0, text.length - 1 - (right - right // (width + 1)))
    codes = text.codes.at[source].get(mode="clip", wrap_negative_indices=False)
    return LaneText.made(jnp.where((place >= sign) & (right % (width + 1) == width), mark, codes), length)


def text_of_bool(c: Value) -> LaneText:
    """Return "True" or "False"."""
    true, false = LaneText.known("True "), LaneText.known("False")
    return LaneText.made(jnp.where(c, true.codes, false.codes), jnp.where(c, 4, 5).astype(np.int32))


def _short(text: LaneText) -> LaneText:
    """Return a text that an error shows in full; a lane with a longer one stops."""
    limit(text.length <= SHOWN, f"the text of an error about a text of more than {SHOWN} characters")
    return text


def integer_of_text(text: LaneText, base: Value = 10) -> Value:
    """Return the integer that a text shows, as the builtin `int`; the lane raises ValueError if it shows none."""
    of_lane = isinstance(base, jax.Array)
    if not of_lane and base not in range(2, 37):
        raise TypeError("the base of `int(text, base)` of a lane must be a number from 2 to 36")
    if of_lane:
        limit((base >= 2) & (base <= 36), "the base of `int(text, base)` of a lane is not from 2 to 36")
    shown = text.strip()
    codes, n = shown.codes, shown.length
    first = codes[0]
    signed = jnp.logical_and(n > 0, (first == ord("-")) | (first == ord("+"))).astype(np.int32)
    start = signed
    if of_lane or PREFIXES.get(base):
        letter = sum(jnp.where(base == one, ord(PREFIXES[one][1]), 0) for one in (2, 8, 16))
        second = codes.at[signed].get(mode="clip") == ord("0")
        third = codes.at[signed + 1].get(mode="clip")
        third = jnp.where((third >= ord("A")) & (third <= ord("Z")), third + 32, third)
        start = start + jnp.where(second & (letter > 0) & (third == letter) & (n >= signed + 3), 2, 0)
    places, before = jnp.arange(codes.shape[0], dtype=np.int32), jnp.roll(codes, 1)

    def is_mark(code: Index, before: Value, place: Index) -> Value:
        # A mark stands between two digits, or behind a prefix.
        begins = (place > start) | ((place == start) & (start > signed))
        return (code == ord("_")) & (before != ord("_")) & (place + 1 < n) & begins

    def is_wrong(at: tuple[Index, Index, Index]) -> Value:
        digit = _values(at[0])
        return ~is_mark(*at) & ((digit < 0) | (digit >= base))

    wrong = first_row(is_wrong, (codes, before, places), n, start)
    good = (n > start) & (wrong >= n)
    # A letter that is no digit may stand in front of a digit of other scripts, which Python reads.
    foreign = ~good & (first_row(lambda code: code > 127, codes, jnp.where(good, 0, n)) < n)
    limit(~foreign, "`int` of a text with characters other than ASCII")
    refused = f"invalid literal for int() with base {base}"
    if of_lane:
        limit(good, "a text that shows no integer in a base of the lane")
    else:
        require(good, "ValueError", refused, argument=lambda: as_quoted(f"{refused}: ", _short(text)))
    negative = jnp.logical_and(signed == 1, first == ord("-"))
    dtype = np.dtype(jnp.result_type(int))
    word = np.dtype(f"u{dtype.name}")
    most = jnp.asarray(np.iinfo(dtype).max, word) + negative.astype(word)
    radix, nothing = jnp.asarray(base).astype(word), (jnp.zeros((), word), jnp.asarray(False))

    def step(carry: Value, at: tuple[Index, Index, Index], stop: Index) -> Value:
        value, large = carry
        digit, counts = _values(at[0]).astype(word), (at[2] >= start) & (at[2] < stop) & ~is_mark(*at)
        large = large | (counts & (value > (most - digit) // radix))
        return jnp.where(counts, value * radix + digit, value), large

    def together(at: Index, stop: Index) -> Value:
        return jax.lax.scan(lambda c, at: (step(c, at, stop), None), nothing, at)[0]

    def alone(at: Index, stop: Index) -> Value:
        return jax.lax.fori_loop(start, stop, lambda k, c: step(c, row(at, k), stop), nothing)

    value, large = by_width(together, alone)((codes, before, places), jnp.where(good, n, start))
    limit(jnp.logical_not(large), f"the number that the text shows does not fit {dtype.name}")
    return number(jnp.where(negative, word.type(0) - value, value).astype(dtype))


def _values(codes: Column) -> Value:
    """The digits that codes stand for, -1 for other characters."""
    digit = jnp.where((codes >= ord("0")) & (codes <= ord("9")), codes - ord("0"), -1)
    small, capital = codes - ord("a"), codes - ord("A")
    digit = jnp.where((small >= 0) & (small < 26), small + 10, digit)
    return jnp.where((capital >= 0) & (capital < 26), capital + 10, digit)
