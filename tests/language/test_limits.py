"""Limits of lanes, which Python does not have: a status of their own, and no exception that a program could catch."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import pcbatch
from pcbatch import Status

LIMIT, CAUGHT = int(Status.LIMIT), -7
NAN, INF = float("nan"), float("inf")

pytestmark = pytest.mark.promotion("standard")


def first(x):
    try:
        return sorted([x, 1.0, 2.0])[0]
    except Exception:
        return -7.0


def keys(x):
    try:
        return len({x: 1}) + len({x, 1.0})
    except (ValueError, NotImplementedError):
        return -7


def power(n):
    try:
        return 2**n
    except ValueError:
        return -7


def root(x):
    try:
        return x**0.5
    except:  # noqa: E722
        return -7.0


def factorial(n):
    try:
        return math.factorial(n)
    except (OverflowError, ValueError):
        return -7


def floor(x):
    try:
        return math.floor(x) + int(x)
    except OverflowError:
        return -7
    except ValueError:
        return -8


def exponential(x):
    try:
        return math.exp(x)
    except OverflowError:
        return -7.0


def shift(n):
    try:
        return 1 << n
    except ValueError:
        return -7


CASES: list[tuple[Callable[..., Any], list[Any], list[Any]]] = [
    (first, [0.5, NAN], [0.5, LIMIT]),
    (keys, [0.5, NAN], [3, LIMIT]),
    (power, [5, -1], [32, LIMIT]),
    (root, [4.0, -8.0, NAN], [2.0, LIMIT, NAN]),
    (factorial, [5, 13, -1], [120, LIMIT, -7]),
    (floor, [2.5, 1e20, INF, NAN], [4, LIMIT, -7, -8]),
    (exponential, [0.0, 100.0, 1000.0], [1.0, LIMIT, -7.0]),
    (shift, [3, -1], [8, -7]),
]


@pytest.mark.parametrize(("fn", "values", "expected"), CASES, ids=[case[0].__name__ for case in CASES])
def test_no_handler_sees_a_limit(fn: Callable[..., Any], values: list[Any], expected: list[Any]) -> None:
    result = pcbatch.batch(fn).run(jnp.array(values))
    for k, (value, want) in enumerate(zip(values, expected, strict=True)):
        status = int(result.status[k])
        if status == LIMIT:
            assert want == LIMIT
        else:
            assert status == int(Status.OK)
            found = np.asarray(result.value)[k].item()
            assert found == pytest.approx(fn(value), nan_ok=True) and found == pytest.approx(want, nan_ok=True)


def found_in(xs, x):
    return x in xs, xs.count(x)


def equal_lists(xs, x):
    return xs == [1.0, x]


def equal_pairs(xs, x):
    return (x, len(xs)) == (xs[-1], 2), (x,) == (x,)


@pytest.mark.parametrize("fn", [found_in, equal_lists, equal_pairs])
def test_nan_in_lists_has_no_identity(fn: Callable[..., Any]) -> None:
    """Python asks for the identity first: a lane stops where a NaN meets a NaN, and nowhere else."""
    rows = [([1.0, 2.0], 2.0), ([1.0, NAN], NAN), ([1.0, NAN], 2.0), ([1.0, 3.0], NAN)]
    result = pcbatch.batch(fn).run(pcbatch.ragged([row[0] for row in rows]), jnp.array([row[1] for row in rows]))
    assert result.status.tolist() == [0, LIMIT, 0, 0]
    for k in (0, 2, 3):
        assert jax.tree.map(lambda leaf: leaf[k].item(), result.value) == fn(*rows[k])


def test_a_limit_inside_of_calls_and_finally() -> None:
    def tried(n):
        def inner(k):
            if k > 0:
                return math.factorial(k)
            return math.isqrt(k)

        done = 0
        try:
            done = inner(n)
        except Exception:
            done = -7
        finally:
            done += 1
        return done

    n = jnp.array([3, 20, -1])
    result = pcbatch.batch(tried).run(n)
    assert result.status.tolist() == [0, LIMIT, 0] and result.value[::2].tolist() == [tried(3), tried(-1)]
    with pytest.raises(pcbatch.BatchRuntimeError, match="PCB907") as error:
        pcbatch.batch(tried)(n)
    assert "1 of 3 lanes" in str(error.value) and "jax_enable_x64" in str(error.value)


@pytest.mark.parametrize("a", [-0.0, 0.0, 4.0, -4.0, 5.5, -5.5, -INF])
def test_zeros_of_remainders_have_pythons_signs(a: float) -> None:
    def signs(a, b):
        return a % b, a // b, divmod(a, b)[1], math.copysign(1, a % b)

    b = [2.0, -2.0, 3.5, -3.5, INF, -INF]
    found = pcbatch.batch(signs)(jnp.full(len(b), a), jnp.array(b))
    for k, each in enumerate(b):
        want = signs(a, each)
        assert [str(float(one[k])) for one in found] == [str(one) for one in want]


def test_lengths_of_long_ranges() -> None:
    def length(a, b, c):
        return len(range(a, b, c)), list(range(a, b, c))

    rows = [(-2 * 10**9, 2 * 10**9, 10**9), (0, 10, 3), (5, -5, -2), (3, 3, 1)]
    count, values = pcbatch.batch(length)(*(jnp.array(column) for column in zip(*rows, strict=True)))
    assert [(int(count[k]), values.tolist()[k]) for k in range(4)] == [length(*row) for row in rows]


def numbers(xs, n, x, text):
    places, at = [], 0
    for i, v in enumerate(xs):
        if v > 1:
            places.append(i)
            at = i
    return (
        len(xs), xs.count(1), xs.index(1), sum(xs), places, at, len(range(n)), range(n)[1], sum(range(n)),
        n.bit_length(), len(text), text.find("b"), text.count("a"), ord(text[0]), int(str(n)), len(str(n)),
        [int(d) for d in str(n)],
        int(x), round(x), math.floor(x), math.comb(n, 2), math.gcd(n, 6), len({v: 1 for v in xs}), len(set(xs)),
        max(range(len(xs)), key=lambda i: xs[i]), sum(1 for v in xs if v > 1), (n > 2) + (n > 3), divmod(n, 2),
    )  # fmt: skip


def test_numbers_of_python_have_64_bits_with_x64() -> None:
    """What is no number, such as the length that a ragged result keeps, is not looked at."""
    with jax.enable_x64(True):
        args = (
            pcbatch.ragged([[3, 1, 2], [1, 5]]),
            jnp.array([3, 70]),
            jnp.array([2.5, 7.5]),
            pcbatch.ragged(["ab", "cab"]),
        )
        found = pcbatch.batch(numbers)(*args)
        for k, example in enumerate(zip([[3, 1, 2], [1, 5]], [3, 70], [2.5, 7.5], ["ab", "cab"], strict=True)):
            for one, want in zip(found, numbers(*example), strict=True):
                assert (one.tolist()[k] if hasattr(one, "tolist") else tuple(int(part[k]) for part in one)) == want
        whole = [leaf for one in found if isinstance(one, jax.Array | tuple) for leaf in jax.tree.leaves(one)]
        assert {str(leaf.dtype) for leaf in whole} == {"int64"}


def test_a_sum_of_lengths_needs_64_bits() -> None:
    with jax.enable_x64(True):
        n = pcbatch.batch(lambda xs: len(xs) * 10**5 * (len(xs) + 1) // 2)(pcbatch.ragged([[1] * 300, [2]]))
        assert n.tolist() == [300 * 10**5 * 301 // 2, 10**5]
