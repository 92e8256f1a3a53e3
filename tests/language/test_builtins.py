"""Python's builtins on values of a lane: what they give, and what is said where they have no meaning."""

from __future__ import annotations

import itertools
import math
import random
from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import pcbatch
from pcbatch import CompileError
from pcbatch.data.functions import builtins as support

pytestmark = [pytest.mark.share(3), pytest.mark.long, pytest.mark.promotion("standard")]

N = np.array([3, -2, 5], np.int32)
X = np.array([1.5, -2.5, 3.7], np.float32)
ROWS = np.array([[3.0, 1.0, 2.0], [4.0, 6.0, 5.0], [-1.0, 0.0, 9.0]], np.float32)


def whole(x):
    return int(x) // 2 + int(True)


def real(n):
    return float(n) / 2


def flag(n):
    return bool(n - 3)


def made_complex(x):
    z = complex(x)
    return complex(x, 1).imag + complex(x, x).real + abs(z * 1j + z.conjugate()) + complex(imag=x).imag


def complex_of_complex(x):
    z = complex(complex(x, 2), complex(1, x))
    return z.real + 10 * z.imag + 100 * complex(z).imag


def larger(x):
    return max(x, 2) + min(x, 0, -1.0)


def of_a_list(x):
    return max([x, 2.0, x * x]) - min((x, 0.0))


def nearest(x):
    return min([1.0, 2.0, 3.0], key=lambda c: abs(c - x))


def best_place(xs):
    return max(range(len(xs)), key=lambda i: xs[i])


def best_pair(xs):
    value, place = max((x, -i) for i, x in enumerate(xs))
    return value * 10 + place


def first_of_equals(xs):
    return min(enumerate(xs), key=lambda pair: abs(pair[1] - 2.0))[0]


def of_an_array(xs):
    return max(xs) - min(xs) + max(xs, default=0.0)


def of_nothing(xs):
    return max(xs[:0], default=7.0) + max([], default=xs[0])


def some(xs):
    return any(x > 5 for x in xs)


def every(xs):
    return all([x > 0 for x in xs]) or any(xs > 8)


def every_of_none(xs):
    return all(xs[:0]) and not any(xs[:0])


def decided_early(xs):
    return any(i == 2 or xs[i] > 99 for i in range(len(xs))) if xs[0] > 3 else all(xs)


def in_scopes(xs):
    def cut(x):
        return max(x, 0.0)

    floor = lambda x: int(x) if not isinstance(x, int) else x
    return sum([cut(x) + floor(x) for x in xs if not len(xs) == 1]) + sum(not x for x in xs)


def hidden_names(xs):
    def largest(values, max):
        return max(values)

    return largest(xs, lambda values: values[1]) + [float for float in (xs[0], 2.0)][1] + (lambda int: int(2))(abs)


def counted_in(n):
    k = 0
    while k * k < int(n):
        k += 1
    return 1 if k in {1, 3} or k in {2: 0} else 0


def in_ranges(n):
    return [2 in range(n), n in range(-4, n + 3, 2), n not in range(n, 0, -1), 1 if 2 in range(n) else 0]


def known(n):
    size = max(2, len("ab"), int("2"))
    name = str(size) + f"{size}" + "%d" % size + "{}".format(size) + format(size) + repr(size)  # noqa: UP031, UP032
    return jnp.zeros(min(size, 3)).sum() + n * len(name) + float("0.5") + sorted([2, 1])[0] + pow(2, 3, 5)


def seeded(n):
    return n + np.random.default_rng(0).integers(10) + random.Random(3).randint(1, 9)


SCALARS = [whole, real, flag, made_complex, complex_of_complex, larger, of_a_list, nearest]
ARRAYS = [best_place, best_pair, first_of_equals, of_an_array, of_nothing, some, every, every_of_none, decided_early]


def assert_as_plain(fn: Callable[..., Any], column: Any) -> None:
    batched = pcbatch.batch(fn)
    want = [np.asarray(batched.plain(jnp.asarray(row))) for row in column]
    np.testing.assert_allclose(batched(column), want, rtol=1e-6)


@pytest.mark.share(4)
@pytest.mark.parametrize("fn", SCALARS)
@pytest.mark.parametrize("dtype", [np.float32, np.int32, np.int8, np.uint8, np.bool_])
def test_scalars(fn: Callable[..., Any], dtype: Any) -> None:
    if dtype == np.bool_ and fn is flag:
        pytest.skip("numbers are not subtracted from bools")
    assert_as_plain(fn, np.abs(X).astype(dtype) if dtype in (np.uint8, np.bool_) else X.astype(dtype))


@pytest.mark.parametrize("fn", [*ARRAYS, in_scopes, hidden_names])
def test_arrays(fn: Callable[..., Any]) -> None:
    assert_as_plain(fn, ROWS)


@pytest.mark.parametrize("fn", [counted_in, known, seeded])
def test_numbers(fn: Callable[..., Any]) -> None:
    batched = pcbatch.batch(fn)
    np.testing.assert_allclose(batched(N), [np.float32(batched.plain(int(n))) for n in N])


def test_ranges_of_a_lane_as_conditions() -> None:
    want = [in_ranges(n) for n in N.tolist()]
    np.testing.assert_array_equal(np.stack(pcbatch.batch(in_ranges)(N), axis=1), want)


@pytest.mark.parametrize("name", ["max", "min"])
@pytest.mark.parametrize("rows", [1, 2, 3])
def test_order_of_comparisons(name: str, rows: int) -> None:
    """The first of equals, and past a NaN unless it comes first, as in Python; an array as a list of its elements."""
    special = [math.nan, math.inf, -math.inf, 0.0, -0.0, 1.0]
    extreme = {"max": max, "min": min}[name]

    def of_array(xs):
        return extreme(xs)

    def of_list(xs):
        return extreme([xs[i] for i in range(rows)])

    cases = np.array(list(itertools.product(special, repeat=rows)), np.float32)
    want = np.array([extreme(case.tolist()) for case in cases], np.float32)
    for fn in (of_array, of_list):
        np.testing.assert_array_equal(np.asarray(pcbatch.batch(fn)(cases)).view(np.int32), want.view(np.int32))


def test_dtypes() -> None:
    def numbers(x):
        return int(x), float(x), bool(x)

    for dtype in (np.int8, np.float16, np.float32, np.uint32, np.bool_):
        i, x, b = pcbatch.batch(numbers)(np.ones(2, dtype))
        assert (i.dtype, x.dtype, b.dtype) == (np.uint32 if dtype == np.uint32 else np.int32, np.float32, np.bool_)
    with jax.enable_x64(True):
        i, x, b = pcbatch.batch(numbers)(np.ones(2, np.float32))
        assert (i.dtype, x.dtype, b.dtype) == (np.int64, np.float64, np.bool_)


def compared_arrays(xs):
    return max(xs, xs + 1)


def rows_of_an_array(xs):
    return min(jnp.stack([xs, xs]))


def number_of_an_array(xs):
    return float(xs)


def complex_of_an_array(xs):
    return complex(xs).real


def text_as_a_value(xs):
    return len(ascii(xs[0]) + repr(xs) + format(xs[0]))


def text_in_a_lambda(xs):
    return len((lambda v: f"{v}")(xs[0]))


def one_object(xs):
    return xs[0] is not xs[1]


def matched_with_true(xs):
    match xs[0] > 1:
        case True:
            return 1
        case _:
            return 0


REFUSED = [
    (compared_arrays, "PCB308", "jnp.maximum(xs, ys)"),
    (rows_of_an_array, "PCB308", "jnp.min(xs)"),
    (number_of_an_array, "PCB306", ".astype(float)"),
    (complex_of_an_array, "PCB306", ", complex)"),
    (text_as_a_value, "PCB304", "print(f"),
    (text_in_a_lambda, "PCB304", "print(f"),
    (one_object, "PCB305", "write `==`"),
    (matched_with_true, "PCB305", "write an `if`"),
]


@pytest.mark.parametrize(("fn", "code", "help"), REFUSED)
def test_refused(fn: Callable[..., Any], code: str, help: str) -> None:
    with pytest.raises(CompileError) as info:
        pcbatch.batch(fn)(ROWS)
    assert [found.code for found in info.value.diagnostics] == [code]
    assert any(help in text for text in info.value.diagnostics[0].helps)


@pytest.mark.parametrize(
    "call", [lambda: support.max_(), lambda: support.min_(1, 2, default=3), lambda: support.int_("x")]
)
def test_wrong_calls_fail_as_in_python(call: Callable[[], Any]) -> None:
    with pytest.raises((TypeError, ValueError)):
        call()
