"""Formats of floats by significant digits: `f"{x:.6g}"` and `f"{x:.3e}"`, against those of Python."""

from __future__ import annotations

import math
import random
from typing import Any

import jax
import numpy as np
import pytest

import pcbatch
from pcbatch.data.texts import float_digits, float_texts
from tests.language.test_texts_of_floats import texts

COUNT = 6000
COUNTS = {np.float32: (1, 2, 6, 9), np.float64: (1, 3, 6, 16, 17)}


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
        near = np.array([float(f"{k}5e{e}") for k in (9.9, 99999.9, 1.2, 9999999.9) for e in range(-6, 12)]).astype(
            dtype
        )
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
        plain = xs.tolist()
        for count in COUNTS[dtype]:
            assert texts(lambda x, n=count: float_texts.general(x, n), xs) == [f"{x:.{count}g}" for x in plain]
            assert texts(lambda x, n=count: float_texts.scientific(x, n - 1), xs) == [
                f"{x:.{count - 1}e}" for x in plain
            ]
            shown = texts(lambda x, n=count: float_texts.general(x, n, is_float=True), xs)
            assert shown == [f"{x:.{count}}" for x in plain]


def nearest(top: int, bottom: int, most: int) -> int:
    """The least distance of the first `most` multiples of `top / bottom` to whole numbers that is not zero, times the
    reduced bottom."""
    divisor = math.gcd(top, bottom)
    top, bottom = top // divisor, bottom // divisor
    if bottom <= most:
        return 1
    # The remainders that are nearest to zero from above and from below, and the factors that give them. The next such
    # remainder is the sum of both, until the sum of the factors is too large.
    above, below, m_above, m_below = top % bottom, bottom - top % bottom, 1, 1
    while m_above + m_below <= most:
        if above < below:
            steps = min((below - 1) // above, (most - m_below) // m_above)
            below, m_below = below - steps * above, m_below + steps * m_above
        else:
            steps = min((above - 1) // below, (most - m_above) // m_below)
            above, m_above = above - steps * below, m_above + steps * m_below
    return min(above, below)


def sure(kind: float_digits.Kind, power: int, count: int) -> bool:
    """Whether a product of a float with this power of two is a whole number or a half if it is as near as what is not
    known of it."""
    room = float_digits.LIMBS * kind.bits // 2
    last = max(power - kind.fraction, 1 - kind.bias - kind.fraction)
    good = []
    for exponent in {math.floor(math.log10(2) * one) for one in (power, power + 1)}:
        ten = count - 1 - exponent
        two = last + 1  # twice the product, so that halves are whole numbers
        top, bottom = 10 ** max(ten, 0) << max(two, 0), 10 ** max(-ten, 0) << max(-two, 0)
        _, width = float_digits.power_of_ten(ten, room)
        bottom_reduced = bottom // math.gcd(top, bottom)
        distance = nearest(top, bottom, (1 << (power - last + 1)) - 1)
        good.append(distance << (room - (power + 2 + width)) >= bottom_reduced)
    return all(good)


@pytest.mark.parametrize("size", [4, 8])
def test_what_is_left_out_of_a_product_never_counts(size: int) -> None:
    kind = float_digits.KINDS[size]
    powers = range(1 - kind.bias - kind.fraction, kind.bias + 1)
    counts = range(1, float_digits.MOST[size] + 1)
    assert [(power, count) for power in powers for count in counts if not sure(kind, power, count)] == []


def test_the_nearest_multiple_is_found() -> None:
    rng = random.Random(0)
    for _ in range(500):
        top, bottom, most = rng.randrange(1, 3000), rng.randrange(2, 3000), rng.randrange(1, 300)
        reduced = bottom // math.gcd(top, bottom)
        if reduced > most:
            rests = [m * top % bottom for m in range(1, most + 1)]
            least = min(min(rest, bottom - rest) for rest in rests)
            assert nearest(top, bottom, most) * bottom == least * reduced


def by_digits(x):
    return f"{x:.6g}|{x:g}|{x:10.4g}|{x:<8.3g}|{x:^12.2g}|{x:+.3g}|{x: G}|{x:010.3g}|{x:,.9g}|{x:.0g}"


def with_exponents(x):
    return f"{x:e}|{x:.3e}|{x:E}|{x:12.2e}|{x:<12.1e}|{x:+.0e}|{x:*^14.4E}|{x:012.3e}|{x:.3F}"


def by_digits_alone(x):
    return f"{x:8.3}|{x:.6}|{x:+.1}|{x:,.7}|{x:<14.5}|{x:012.4}"


def by_percent(x):
    return "%g|%.3g|%10.2e|%-9.4G|%+E|" % (x, x, x, x, x) + "{:.4g} {:e}".format(x, x)  # noqa: UP031, UP032


VALUES = [0.0, -0.0, 1.0, 9.9999995, -123456.789, 1e-5, 0.000123456, 1e16, -2.5e-17, 65536.0, np.inf, -np.inf, np.nan]


@pytest.mark.parametrize("fn", [by_digits, with_exponents, by_digits_alone, by_percent])
@pytest.mark.parametrize("wide", [False, True])
def test_lanes_have_the_texts_of_python(fn: Any, wide: bool) -> None:
    xs = np.array(VALUES, np.float64 if wide else np.float32)
    if fn is with_exponents:
        xs = xs[~(abs(xs) > 1e9) | ~np.isfinite(xs)]  # the kind `F` has no texts of larger ones in 32 bits
    with jax.enable_x64(wide):
        assert pcbatch.batch(fn)(xs).tolist() == list(map(fn, xs.tolist()))


def of_integers(n):
    return f"{n:g} {n * 1000:.2g} {n:.1e} {n > 2:g} " + "%.3g" % (n * 12345)


def of_either(n):
    return f"{n / 2 if n % 2 else n:.4g}"


@pytest.mark.promotion("standard")
@pytest.mark.parametrize("fn", [of_integers, of_either])
def test_integers_are_shown_as_floats(fn: Any) -> None:
    assert pcbatch.batch(fn)(np.arange(6)).tolist() == [fn(n) for n in range(6)]


def without_kind(n):
    return f"{n / 2 if n % 2 else n:.4}"


def too_many(x):
    return f"{x:.10g}"


def more_places(x):
    return f"{x:.9e}"


def with_zeros(x):
    return f"{x:#.3g}"


@pytest.mark.promotion("standard")
@pytest.mark.parametrize(("fn", "x"), [(without_kind, 1), (too_many, 1.0), (more_places, 1.0), (with_zeros, 1.0)])
def test_what_is_refused(fn: Any, x: float) -> None:
    with pytest.raises(pcbatch.errors.CompileError, match="PCB304"):
        pcbatch.batch(fn)(np.full(2, x, np.int32 if isinstance(x, int) else np.float32))
