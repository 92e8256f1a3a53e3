"""Functions of `math` and `cmath` on floats: close to Python's, exact where Python's result is, errors where it has."""

from __future__ import annotations

import cmath
import itertools
import math
import random
from typing import Any

import jax
import numpy as np
import pytest

import pcbatch
from pcbatch.data.checks import NumberRules
from tests.language.numbers.lanes import exact, near, outcomes

pytestmark = pytest.mark.share(3)

SPECIAL = [0.0, -0.0, 1.0, -1.0, 2.0, -2.0, 0.5, -0.5, 1.5, 2.5, -3.0, 27.0, -8.0, 64.0, 100.0, 1000.0, 1e10, 1e20,
           -1e20, 88.0, 89.0, -100.0, 710.0, math.inf, -math.inf, math.nan, 1e-10, 0.001, 34.0, 36.0, 172.0, 2.0**31,
           -(2.0**31), 16777217.0]  # fmt: skip
DRAW = random.Random(3)
VALUES = [
    *SPECIAL,
    *(DRAW.uniform(-5, 5) for _ in range(300)),
    *(DRAW.uniform(-1, 1) for _ in range(300)),
    *(DRAW.choice((-1, 1)) * 10 ** DRAW.uniform(-20, 20) for _ in range(300)),
]
TURNING = ("sin", "cos", "tan")
OF_THE_DTYPE = {"ulp", "nextafter"}  # which Python's results cannot be
INTEGERS = {"isqrt", "gcd", "lcm", "factorial", "comb", "perm"}  # by other tests, as are those of sequences
SEQUENCES = {"dist", "fsum", "prod", "sumprod", "fma"}
TWO = ("atan2", "copysign", "fmod", "remainder", "pow", "log", "hypot", "isclose")
ONE = sorted(
    name
    for name in dir(math)
    if callable(getattr(math, name)) and name[0] != "_"
    and name not in {*OF_THE_DTYPE, *INTEGERS, *SEQUENCES, *TWO, "ldexp"}
)  # fmt: skip


def wrong(fn: Any, *columns: Any, rtol: float = 3e-5) -> list[Any]:
    """The lanes that do not give what Python gives, or do not raise what it raises."""
    return [lane for lane in outcomes(fn, *columns) if not near(lane, rtol)]


@pytest.mark.share(2)
@pytest.mark.parametrize("name", [*ONE, "log"])
def test_one_argument(name: str) -> None:
    values = [v for v in VALUES if name not in TURNING or abs(v) < 1e4 or not math.isfinite(v)]
    steep = name in ("gamma", "exp", "exp2", "expm1", "cosh", "sinh", "erfc")
    fn = getattr(math, name)
    assert wrong(fn, np.array(values, np.float32), rtol=2e-4 if steep else 3e-5) == []
    assert wrong(fn, np.arange(-40, 40, dtype=np.int32), rtol=2e-4 if steep else 3e-5) == []


@pytest.mark.parametrize("name", TWO)
def test_two_arguments(name: str) -> None:
    pairs = np.array([*itertools.product(SPECIAL, SPECIAL), *zip(VALUES, VALUES[::-1], strict=True)], np.float32)
    assert wrong(getattr(math, name), pairs[:, 0], pairs[:, 1]) == []


def test_ldexp() -> None:
    xs, places = zip(*itertools.product(SPECIAL, range(-120, 160, 10)), strict=True)
    assert wrong(math.ldexp, np.array(xs, np.float32), np.array(places, np.int32)) == []


def test_exact_results() -> None:
    powers = np.arange(-100, 100)
    assert all(map(exact, outcomes(math.log2, 2.0**powers)))
    assert all(map(exact, outcomes(math.exp2, powers[:220].astype(np.float32))))
    assert all(map(exact, outcomes(math.log10, 10.0 ** np.arange(11))))
    bases, exponents = np.divmod(np.arange(150), 6)
    assert all(map(exact, outcomes(math.pow, bases - 12.0, exponents.astype(np.float32))))
    assert [lane.lane for lane in outcomes(math.cbrt, np.arange(-60.0, 60.0) ** 3)] == list(range(-60, 60))
    assert all(map(exact, outcomes(math.gamma, np.arange(1, 11, dtype=np.float32))))


def test_zeros_keep_their_signs() -> None:
    def signs(x: float) -> tuple[float, ...]:
        one = (math.cbrt, math.sqrt, math.expm1, math.log1p, math.sinh, math.asinh, math.tanh, math.atanh, math.erf)
        values = [fn(x) for fn in one]
        return *[math.copysign(1.0, value) for value in values], math.copysign(1.0, math.pow(x, 3.0))

    for x in (-0.0, 0.0):
        assert [float(sign[0]) for sign in pcbatch.batch(signs)(np.float32([x]))] == [*signs(x)]


def test_lengths() -> None:
    a, b = (part.astype(np.float32) for part in np.divmod(np.arange(60 * 60), 60))
    found = outcomes(math.hypot, a, b)
    assert all(near(lane, 1e-6) for lane in found)
    assert all(exact(lane) for lane in found if float(lane.plain).is_integer())

    def distance(x: float, y: float, z: float) -> float:
        return math.dist((x, y, 1.0), (0.0, 2.0, z)) + math.hypot(x, y, z)

    values = np.array([v for v in VALUES if not abs(v) > 1e15], np.float32)
    assert wrong(distance, values, values[::-1], np.roll(values, 7)) == []


def test_sums_without_the_errors_of_rounding() -> None:
    def total(x: float, y: float) -> float:
        return math.fsum([x, y, 1.0, -x, y])

    large, small = np.array([1e8, 3e10, -2e9], np.float32), np.array([0.25, 1.5, 7.0], np.float32)
    assert all(map(exact, outcomes(total, large, small)))
    infinite = outcomes(math.fsum, np.array([[1.0, math.inf], [math.inf, -math.inf]], np.float32))
    assert [lane.lane for lane in infinite] == [math.inf, "ValueError"]


@pytest.mark.parametrize("name", [n for n in dir(cmath) if callable(getattr(cmath, n)) and n[0] not in "_r"])
def test_complex_numbers(name: str) -> None:
    parts = (0.0, -0.0, 1.0, -1.0, 0.5, -2.0, 3.0, 1e3)
    values = np.array([complex(x, y) for x in parts for y in (0.0, -0.0, 1.0, -1.0, 0.5, 2.5)], np.complex64)
    columns = (values, values[::-1]) if name == "isclose" else (values,)
    assert wrong(getattr(cmath, name), *columns, rtol=1e-4) == []


def test_nan_may_be_kept() -> None:
    rules = NumberRules(math_errors="nan")
    found = outcomes(math.sqrt, np.array([-1.0, 4.0], np.float32), rules=rules)
    assert math.isnan(found[0].lane) and found[1].lane == 2.0
    found = outcomes(math.log, np.array([0.0, -1.0, 1.0], np.float32), rules=rules)
    assert found[0].lane == -math.inf and math.isnan(found[1].lane) and found[2].lane == 0.0
    # Integers have no NaN.
    assert outcomes(math.floor, np.array([math.nan], np.float32), rules=rules)[0].lane == "ValueError"


def test_derivatives() -> None:
    """Results that are made exact keep the derivative."""
    from pcbatch.data.functions.math_functions.table import replacement

    cases = {math.log2: (8.0, 1 / (8 * math.log(2))), math.exp2: (3.0, 8 * math.log(2)), math.cbrt: (27.0, 1 / 27),
             math.log10: (100.0, 1 / (100 * math.log(10))), math.sqrt: (4.0, 0.25)}  # fmt: skip
    for fn, (x, slope) in cases.items():
        of_lanes = replacement(fn)
        assert of_lanes is not None
        np.testing.assert_allclose(jax.grad(of_lanes)(x), slope, rtol=1e-5)


def test_double_precision() -> None:
    with jax.enable_x64(True):
        for name in ("sqrt", "exp", "log", "log10", "log2", "sin", "cbrt", "floor", "gamma", "erf"):
            values = [v for v in VALUES if name != "sin" or abs(v) < 1e4]
            assert wrong(getattr(math, name), np.array(values), rtol=1e-11) == [], name
        assert all(map(exact, outcomes(math.log2, 2.0 ** np.arange(-500, 500))))
        assert all(map(exact, outcomes(math.log10, 10.0 ** np.arange(-20, 22))))
