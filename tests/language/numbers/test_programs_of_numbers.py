"""Programs on numbers as people write them, with `math` and Python's builtins, next to the plain functions."""

# ruff: noqa: E721, UP031, UP032
from __future__ import annotations

import cmath
import functools
import math
import math as m
import numbers
import operator
import statistics
from collections import deque
from collections.abc import Callable
from decimal import Decimal
from fractions import Fraction
from math import floor, gcd, isqrt
from typing import Any

import jax
import numpy as np
import pytest

import pcbatch

pytestmark = [pytest.mark.promotion("standard")]


def ints(*values: int) -> np.ndarray:
    """A column of integers."""
    return np.array(values, np.int32)


def floats(*values: float) -> np.ndarray:
    """A column of floats."""
    return np.array(values, np.float32)


def perfect_square(n):
    if n < 0:
        return False
    r = isqrt(n)
    return r * r == n


def lcm_of_range(n):
    out = 1
    for k in range(2, n + 1):
        out = math.lcm(out, k)
    return out


def totient(n):
    count = 0
    for k in range(1, n + 1):
        if gcd(n, k) == 1:
            count += 1
    return count


def haversine(lat1, lon1, lat2, lon2):
    p1, p2 = m.radians(lat1), m.radians(lat2)
    dp, dl = p2 - p1, m.radians(lon2 - lon1)
    a = m.sin(dp / 2) ** 2 + m.cos(p1) * m.cos(p2) * m.sin(dl / 2) ** 2
    return 2 * 6371.0 * m.asin(m.sqrt(a))


def roots(a, b, c):
    d = b**2 - 4 * a * c
    if d < 0:
        raise ValueError("no real roots: " + str(d))
    s = math.sqrt(d)
    return (-b + s) / (2 * a), (-b - s) / (2 * a)


def compound(p, r, n):
    return round(p * (1 + r / 100) ** n, 2)


def modexp(b, e, k):
    return pow(b, e, k)


def digital_root(n):
    while n >= 10:
        s = 0
        while n:
            n, d = divmod(n, 10)
            s += d
        n = s
    return n


def armstrong(n):
    digits = 0
    t = n
    while t > 0:
        digits += 1
        t //= 10
    total, t = 0, n
    while t > 0:
        total += (t % 10) ** digits
        t //= 10
    return total == n


def bits(n):
    return n.bit_length(), n.bit_count(), bin_count(n)


def bin_count(n):
    return n.bit_count() + (n & 1)


def leap(y):
    return y % 4 == 0 and (y % 100 != 0 or y % 400 == 0)


def zeller(d, mo, y):
    if mo < 3:
        mo += 12
        y -= 1
    k, j = y % 100, y // 100
    return (d + math.floor(13 * (mo + 1) / 5) + k + k // 4 + j // 4 + 5 * j) % 7


def newton(x):
    for _ in range(20):
        step = (math.sin(x) - 0.5 * x) / (math.cos(x) - 0.5)
        x -= step
        if abs(step) < 1e-6:
            break
    return x


def projectile(v, angle):
    rad = math.radians(angle)
    return v**2 * math.sin(2 * rad) / 9.81, v * math.cos(rad), 2 * v * math.sin(rad) / 9.81


def helper(x):
    return math.sqrt(x) + floor(x)


def uses_helper(x):
    return helper(x) * 2


def membership(n, k):
    return n in {0, k}, n in (1, 2, k), n in [3, k + 1], n not in {k}


def tuples(a, b):
    t, u = (a, b), (b, a)
    return t == u, t < u, t >= u, t != u, t.count(a), (a, b, 3).index(b)


def orders(a, b, c):
    x, y, z = sorted((a, b, c))
    w = sorted([(a, 1.0), (b, 2.0), (c, 3.0)], reverse=True)
    ends = max(a, b, key=lambda v: -v), min((a, b), (b, c))
    return x, y, z, w[0][1], ends, sorted([a, b, c], key=abs)[0], sum((a, b, c))


def fib_gcd(a, b):
    while b:
        a, b = b, a % b
    return a


def questions(n, x):
    r = 0
    if isinstance(n, (int, float)):
        r += 1
    if type(n) == int:
        r += 2
    if isinstance(x, bool):
        r += 4
    if isinstance(x, numbers.Number):
        r += 8
    if isinstance(n, numbers.Integral):
        r += 16
    if x.is_integer():
        r += 32
    return r + n.real + n.imag + n.numerator + n.denominator + n.conjugate()


def raises_var(n):
    msg = f"bad {n}"
    if n < 0:
        raise ValueError(msg)
    if n == 7:
        raise ValueError("got {}".format(n)) from None
    if n == 8:
        raise KeyError("n=%d, %5.2f" % (n, n / 2))
    assert n < 100, "n is " + str(n) + "!"
    return n


def rounds(x, n):
    return round(x, 2), round(x), round(n, -2), round(n, 1), round(x, 0)


def powers(n, x):
    return n**2, x**2, x // 1, x % 1, n // -2, n % -3, ~n, n << 2, n >> 1, n / 2, 1 << (n % 5), n & 1 == 0


def lib(n, x):
    products = functools.reduce(lambda a, b: a * b, [n, 2, 3]), operator.mul(n, 2), math.prod([n, n, 2])
    middles = statistics.mean([n, 2, 3]), statistics.median([x, 1.0, 2.0, n])
    sums = sum(map(math.sqrt, [abs(x), n])), sum(math.factorial(k) for k in (n, 2))
    return products, middles, sums, functools.reduce(math.gcd, [n, 12, 18]), max(map(abs, (n, -9)))


def cx(a, b):
    z = complex(a, b)
    w = cmath.sqrt(z)
    return abs(z), w.real, w.imag, cmath.phase(z), (z * z.conjugate()).real


def collatz_float(n: int) -> float:
    total: float = 0.0
    while n != 1:
        n = n // 2 if n % 2 == 0 else 3 * n + 1
        total += math.log(n, 2)
    return total


CASES: list[tuple[Callable[..., Any], *tuple[np.ndarray, ...]]] = [
    (perfect_square, ints(-4, 0, 1, 2, 4, 15, 16, 46340**2, 2**31 - 1)),
    (lcm_of_range, ints(1, 2, 5, 10, 20)),
    (totient, ints(1, 2, 9, 36, 97)),
    (haversine, floats(52.5, 0, 10), floats(13.4, 0, 20), floats(48.85, 0, -30), floats(2.35, 90, 40)),
    (roots, floats(1, 2, 1), floats(-3, 5, 2), floats(2, 1, 5)),
    (compound, floats(1000, 250.5), floats(5, 3.25), ints(10, 3)),
    (modexp, ints(3, 2, 7, 3), ints(200, 10, -1, 2**31 - 1), ints(13, 1000, 11, 10**9 + 7)),
    (digital_root, ints(0, 9, 38, 987654321)),
    (armstrong, ints(1, 153, 154, 9474, 9475)),
    (bits, ints(0, 1, 255, -8, 2**31 - 1)),
    (leap, ints(1900, 2000, 2023, 2024)),
    (zeller, ints(1, 29, 15), ints(1, 2, 8), ints(2000, 2024, 1947)),
    (newton, floats(1.5, 2.0, 3.0)),
    (projectile, floats(10, 20), floats(45, 30)),
    (uses_helper, floats(4, 2.5)),
    (membership, ints(0, 1, 3, 5), ints(5, 1, 2, 5)),
    (tuples, ints(1, 2, 2), ints(2, 1, 2)),
    (orders, ints(3, 1, 2), ints(2, 1, -5), ints(1, 3, 4)),
    (fib_gcd, ints(12, 7), ints(18, 21)),
    (questions, ints(3, -4), floats(2.0, 2.5)),
    (raises_var, ints(1, -1, 7, 8, 200)),
    (rounds, floats(2.675, -1.005, 2.5), ints(1250, 1350, -1250)),
    (powers, ints(3, -7, 10), floats(2.5, -2.5, 7)),
    (lib, ints(3, 4), floats(2.5, -1)),
    (cx, floats(3, -4), floats(4, 0)),
    (collatz_float, ints(6, 7, 1)),
]


def plain(fn: Callable[..., Any], row: list[Any]) -> Any:
    """What the plain function gives, or the error that it raises."""
    try:
        return fn(*row)
    except (ValueError, ArithmeticError, LookupError, AssertionError) as error:
        return error


@pytest.mark.share(3)
@pytest.mark.parametrize(
    ("fn", "columns"), [(fn, columns) for fn, *columns in CASES], ids=lambda p: getattr(p, "__name__", "")
)
def test_lanes_give_what_the_function_gives(fn: Callable[..., Any], columns: list[np.ndarray]) -> None:
    result = pcbatch.batch(fn).run(*columns)
    for k, row in enumerate(zip(*columns, strict=True)):
        want = plain(fn, [value.item() for value in row])
        assert (int(result.status[k]) == 0) is not isinstance(want, Exception), (k, want)
        if not isinstance(want, Exception):
            found = [np.asarray(leaf)[k].item() for leaf in jax.tree.leaves(result.value)]
            np.testing.assert_allclose(np.array(found, complex), np.array(jax.tree.leaves(want), complex), rtol=1e-4)


@pytest.mark.share(3)
@pytest.mark.parametrize("fn", [perfect_square, modexp, haversine, compound, bits, orders, rounds])
def test_with_wide_types(fn: Callable[..., Any]) -> None:
    columns = next(columns for one, *columns in CASES if one is fn)
    with jax.enable_x64(True):
        wide = [column.astype(np.int64 if column.dtype.kind == "i" else np.float64) for column in columns]
        result = pcbatch.batch(fn).run(*wide)
        for k, row in enumerate(zip(*wide, strict=True)):
            want = jax.tree.leaves(fn(*[value.item() for value in row]))
            found = [np.asarray(leaf)[k].item() for leaf in jax.tree.leaves(result.value)]
            np.testing.assert_allclose(np.array(found, complex), np.array(want, complex), rtol=1e-12)


def messages(fn: Callable[..., Any], *columns: np.ndarray) -> list[str]:
    """What is said of the lanes that failed."""
    with pytest.raises(pcbatch.BatchRuntimeError) as info:
        pcbatch.batch(fn)(*columns)
    return str(info.value).splitlines()


def test_texts_of_messages() -> None:
    """Text in a variable shows the values at the time when it was made."""

    def told(n, x):
        text = f"n was {n}, "
        more = text + "x is {:.2f}".format(x)
        n = n * 2
        if n == 2:
            raise ValueError(more)
        if n == 4:
            raise ValueError("got " + str(n) + " and " + repr(x))
        if n == 6:
            raise ValueError("%d of %5.1f, %s%%" % (n, x, n))
        if n == 8:
            raise ValueError(text)
        return n

    for n, want in (
        (1, "n was 1, x is 0.50"),
        (2, "got 4 and 0.5"),
        (3, "6 of   0.5, 6%"),
        (4, "n was 4, "),
    ):
        assert any(want in line for line in messages(told, ints(n, 9), floats(0.5, 1)))
    assert pcbatch.batch(told)(ints(5), floats(0)).tolist() == [10]


def test_containers_of_lanes_have_the_types_of_pythons() -> None:
    def f(n):
        xs = []
        for k in range(n):
            xs.append(k)
        d = {}
        d[n] = 1
        return isinstance(xs, list), type(xs) is list, isinstance(xs, (tuple, int)), isinstance(d, dict)

    assert [bool(answer[0]) for answer in pcbatch.batch(f)(ints(2))] == [True, True, False, True]


def test_errors_of_math_have_their_names() -> None:
    def f(x):
        return math.sqrt(x) + math.log(x + 1)

    assert any("`ValueError`" in line for line in messages(f, floats(-0.5, 1)))
    assert any("math domain error" in line for line in messages(f, floats(-0.5, 1)))
    kept = pcbatch.batch(f, numbers="jax")(floats(-0.5, 1))
    assert math.isnan(kept[0]) and kept[1] == pytest.approx(1 + math.log(2))


def test_what_has_no_number_is_refused() -> None:
    for fn, code in (
        (lambda xs: math.sqrt(xs), "PCB306"),
        (lambda xs: xs[0].hex(), "PCB303"),
        (lambda xs: math.gcd(xs[0]), "PCB303"),
        (lambda xs: Fraction(int(xs[0]), 3), "PCB304"),
        (lambda xs: Decimal(xs[0]), "PCB304"),
        (lambda xs: math.floor(xs * 1j), "PCB30"),
    ):
        with pytest.raises(pcbatch.CompileError, match=code):
            pcbatch.batch(fn)(np.ones((2, 3), np.float32))


def uniform(state):
    total = 0.0
    for _ in range(3):
        state = (state * 75 + 74) % 65537
        total += state / 2**31
    return total, 2**33 / state, -(state / -(2**40))


def beside_a_float(n):
    x = n * 0.5
    return x * 10**12, 2**31 - x, x // 2**31, x % 2**33, 3**40 * x, x > 2**31, 2**40 == x, (2**31) ** (x - 1)


@pytest.mark.parametrize("fn", [uniform, beside_a_float])
def test_integers_beyond_those_of_lanes_are_floats_where_python_makes_them_such(fn) -> None:
    got = pcbatch.batch(fn)(ints(2, 3))
    for part, wanted in zip(got, zip(fn(2), fn(3), strict=True), strict=True):
        np.testing.assert_allclose(part, wanted, rtol=1e-6)


BEYOND = [
    lambda n: n / (2**53 + 1),  # no float is equal to it
    lambda n: n / 2**200,  # an infinity in 32 bits
    lambda n: n * 0.5 < 2**31 + 1,  # no float of 32 bits is equal to it
    lambda n: n * 2**31,
]


@pytest.mark.parametrize("fn", BEYOND)
def test_integers_that_would_be_another_number_as_floats_are_refused(fn) -> None:
    with pytest.raises(pcbatch.CompileError, match="PCB312"):
        pcbatch.batch(fn)(ints(2, 3))


def test_what_follows_from_a_refused_operation_is_not_told() -> None:
    def simulated(n):
        waiting, total = deque(), 0.0
        for k in range(5):
            waiting.append((n / (2**53 + 1), k))
            if len(waiting) > 2:
                since, who = waiting.popleft()
                total += since * who
        return total

    with pytest.raises(pcbatch.CompileError) as info:
        pcbatch.batch(simulated)(ints(2, 3))
    assert [d.code for d in info.value.diagnostics] == ["PCB312"]
