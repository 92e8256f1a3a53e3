"""Operators where Python's integers grow and its divisions raise: lanes fail if the rules ask for it."""

from __future__ import annotations

import operator
import random
from typing import Any

import jax
import numpy as np
import pytest

import pcbatch
from pcbatch.data.checks import NumberRules
from pcbatch.data.functions.builtins import int_
from pcbatch.data.sequences.list_reductions import exact_sum
from pcbatch.errors import UsageError
from tests.language.numbers.lanes import Lane, exact, outcomes
from tests.language.numbers.test_math_integers import LARGEST, integers

pytestmark = pytest.mark.share(3)

FAILING = NumberRules(division=True)
SMALL = integers(40, -3, 40)


def rounded_as_python(digits: int) -> Any:
    """The function that rounds to so many places."""
    return lambda x: round(x, digits)


@pytest.mark.parametrize("name", ["add", "sub", "mul", "floordiv", "mod", "truediv", "lshift"])
def test_overflow_and_division_by_zero(name: str) -> None:
    right = SMALL if name == "lshift" else integers(31)
    found = outcomes(getattr(operator, name), integers(30), right, rules=FAILING)
    if name == "truediv":
        assert {lane.lane for lane in found if lane.args[1] == 0} == {"ZeroDivisionError"}
        return
    assert [lane for lane in found if not exact(lane)] == []


def test_overflow_of_powers_and_signs() -> None:
    values = np.append(integers(32), -LARGEST - 1).astype(np.int32)
    found = outcomes(operator.pow, integers(33, -50, 50), np.abs(SMALL), rules=FAILING)
    assert [lane for lane in found if not exact(lane)] == []
    for fn in (operator.neg, operator.abs):
        assert [lane for lane in outcomes(fn, values, rules=FAILING) if not exact(lane)] == []
    whole = outcomes(int_, np.array([1.5, -2e9, 3e9, np.nan, -np.inf], np.float32), rules=FAILING)
    assert [lane.lane for lane in whole] == [1, -2000000000, "limit", "ValueError", "OverflowError"]


def operator_add(a, b):
    return a + b


def test_integers_wrap_around_where_they_may() -> None:
    most, one = np.array([LARGEST], np.int32), np.array([1], np.int32)
    assert pcbatch.batch(operator_add, numbers="jax")(most, one).tolist() == [-LARGEST - 1]
    assert pcbatch.batch(operator_add).run(most, one).status.tolist() == [int(pcbatch.Status.LIMIT)]


def test_arrays_wrap_as_in_plain_python() -> None:
    @pcbatch.batch
    def total(xs, n):
        return xs[0] * 2 + xs[1], n + 1

    xs = np.array([[LARGEST, 5], [1, 2]], np.int32)
    result = total.run(xs, np.array([1, LARGEST], np.int32))
    assert result.status.tolist() == [0, int(pcbatch.Status.LIMIT)]
    assert result.value[0][0] == 3


def test_a_lane_that_overflows() -> None:
    def factorial(n):
        product = 1
        for k in range(2, n + 1):
            product *= k
        return product

    n = np.array([5, 12, 13], np.int32)
    with pytest.raises(pcbatch.BatchRuntimeError, match="PCB907"):
        pcbatch.batch(factorial)(n)
    result = pcbatch.batch(factorial).run(n)
    assert result.value[:2].tolist() == [120, 479001600]
    assert result.status[2] == int(pcbatch.Status.LIMIT)


def test_unknown_rules_are_refused() -> None:
    for wrong in ("C", "wrap", None, 3):
        with pytest.raises(UsageError, match="PCB401"):
            pcbatch.batch(lambda n: n, numbers=wrong)


def decimals(dtype: Any) -> np.ndarray:
    """Floats of all sizes, halves and decimal numbers among them."""
    draw = random.Random(7)
    return np.array(
        [
            *(draw.uniform(-10, 10) for _ in range(700)),
            *(draw.uniform(-1e5, 1e5) for _ in range(700)),
            *(draw.randrange(-100000, 100000) / 10 ** draw.randrange(6) for _ in range(1500)),
            *(k / 8 for k in range(-100, 100)),
            *(k / 1000 for k in range(-1500, 1500, 5)),
            *(10 ** draw.uniform(-10, 20) for _ in range(400)),
            0.0, -0.0, np.inf, -np.inf, np.nan,
        ],
        dtype,
    )  # fmt: skip


def wrongly_rounded(digits: int, values: np.ndarray) -> list[Lane]:
    """The lanes whose result is not the float nearest to Python's."""
    dtype = values.dtype.type
    found = outcomes(rounded_as_python(digits), values)
    return [lane for lane in found if lane.lane != dtype(lane.plain) and not np.isnan(lane.args[0])]


@pytest.mark.share(2)
@pytest.mark.parametrize("digits", [0, 1, 2, 3, 5, -1, -3])
def test_rounding_by_the_decimal_value(digits: int) -> None:
    assert wrongly_rounded(digits, decimals(np.float32)) == []
    with jax.enable_x64(True):
        assert wrongly_rounded(digits, decimals(np.float64)) == []


def test_rounding_of_integers() -> None:
    for digits in (-1, -2, 0, 3):
        found = outcomes(rounded_as_python(digits), np.append(integers(50), np.arange(-300, 300)).astype(np.int32))
        assert [lane for lane in found if not exact(lane) and abs(lane.plain) <= LARGEST] == []


def test_sums_that_overflow() -> None:
    def listed(n):
        xs = []
        for k in range(n):
            xs.append(k * 100000000)
        return sum(xs)

    result = pcbatch.batch(listed).run(np.array([3, 7, 8], np.int32))
    assert result.status.tolist() == [0, 0, int(pcbatch.Status.LIMIT)]
    assert result.value[:2].tolist() == [listed(3), listed(7)]

    def counted(xs):
        return sum(xs) if isinstance(xs, list) else exact_sum("sum", xs)

    rows = integers(60)[: 4 * (len(integers(60)) // 4)].reshape(-1, 4)
    lanes = outcomes(counted, rows)
    for lane, row in zip(lanes, rows.tolist(), strict=True):
        assert lane.plain == sum(row)
        assert exact(lane)
