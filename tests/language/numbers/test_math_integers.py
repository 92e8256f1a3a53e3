"""Functions of `math` on integers, and `pow` with a modulus, are exact in every lane, or the lane raises."""

from __future__ import annotations

import math
import random
from typing import Any

import jax
import numpy as np
import pytest

from tests.language.numbers.lanes import exact, outcomes

pytestmark = pytest.mark.share(3)

LARGEST = 2**31 - 1
TRIES = 800


def integers(seed: int, low: int = -LARGEST - 1, high: int = LARGEST) -> np.ndarray:
    """Integers of all sizes, some of them at the ends of the range."""
    draw = random.Random(seed)
    found = []
    for _ in range(TRIES):
        value = draw.getrandbits(draw.randrange(high.bit_length() + 1)) * draw.choice((1, 1, -1))
        end = draw.choice((high, low)) + draw.choice((-1, 0, 1))
        found.append(min(max(end if draw.random() < 0.06 else value, low), high))
    return np.array(found, np.int64 if high > LARGEST else np.int32)


def wrong(fn: Any, *columns: Any) -> list[Any]:
    """The lanes that do not give what Python gives."""
    return [lane for lane in outcomes(fn, *columns) if not exact(lane)]


def test_isqrt_of_squares_and_their_neighbours() -> None:
    roots = [*range(200), *random.Random(1).sample(range(46341), 800), 46340]
    values = [min(max(root * root + near, -1), LARGEST) for root in roots for near in (-1, 0, 1)]
    assert wrong(math.isqrt, np.array([*values, LARGEST, -1, -LARGEST - 1], np.int32)) == []


def test_common_divisors_and_multiples() -> None:
    assert wrong(math.gcd, integers(2), integers(3)) == []
    assert wrong(math.lcm, integers(5), integers(6)) == []
    assert wrong(math.lcm, integers(5, 0, 3000), integers(6, 0, 3000), integers(7, 0, 60)) == []


def test_factorials() -> None:
    assert wrong(math.factorial, np.arange(-3, 40)) == []
    assert wrong(math.perm, np.arange(-3, 40)) == []


@pytest.mark.parametrize("fn", [math.comb, math.perm])
def test_choices(fn: Any) -> None:
    n, k = np.divmod(np.arange(72 * 72), 72)
    assert wrong(fn, n - 1, k - 1) == []
    assert wrong(fn, np.abs(integers(8, -LARGEST)), integers(9, -2, 20)) == []


def test_products_and_sums() -> None:
    def product(a: int, b: int, c: int) -> int:
        return math.prod([a, b, c])

    def started(a: int, b: int, c: int) -> int:
        return math.prod((a, b), start=c)

    assert wrong(product, integers(10), integers(11, -70, 70), integers(12, -9, 9)) == []
    assert wrong(started, integers(10), integers(11, -70, 70), integers(12, -9, 9)) == []


def test_powers_with_a_modulus() -> None:
    def inverse(base: int, modulus: int) -> int:
        return pow(base, -1, modulus)

    def known(base: int, modulus: int) -> int:
        return pow(base, 10**20 + 1, modulus)

    def large(base: int, exponent: int) -> int:
        return pow(base, exponent, 10**9 + 7)

    assert wrong(pow, integers(13), integers(14), integers(15)) == []
    assert wrong(pow, integers(13, -90, 90), integers(14, -90, 90), integers(15, -90, 90)) == []
    assert wrong(large, integers(16), integers(17, 0)) == []
    assert wrong(inverse, integers(18), integers(19)) == []
    assert wrong(known, integers(18), integers(19)) == []


def test_bits() -> None:
    def bits(n: int) -> tuple[int, int]:
        return n.bit_length(), n.bit_count()

    assert wrong(bits, integers(20)) == []


def test_wide_integers() -> None:
    """With JAX's types of 64 bits, all of it is exact for these."""
    most = 2**63 - 1
    with jax.enable_x64(True):
        roots = [*random.Random(1).sample(range(math.isqrt(most)), 500), math.isqrt(most), 94906265, 94906266]
        squares = [min(max(root * root + near, -1), most) for root in roots for near in (-1, 0, 1)]
        assert wrong(math.isqrt, np.array([*squares, most], np.int64)) == []
        wide = [integers(seed, -most - 1, most) for seed in (21, 22, 23)]
        assert wrong(pow, *wide) == []
        n, k = np.divmod(np.arange(72 * 72), 72)
        assert wrong(math.comb, n - 1, k - 1) == []
        assert wrong(math.factorial, np.arange(-3, 40)) == []
