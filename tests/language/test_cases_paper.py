"""The programs and numbers that the first implementation of the method was tested with."""

from __future__ import annotations

from collections import namedtuple
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import pcbatch

pytestmark = pytest.mark.promotion("standard")
STRATEGIES = pytest.mark.parametrize("strategy", ["pc", "local"])


@pcbatch.batch
def fib(n):
    if n <= 1:
        return 1
    left = fib(n - 2)
    right = fib(n - 1)
    return left + right


@pcbatch.batch
def even(n):
    return True if n == 0 else odd(n - 1)


@pcbatch.batch
def odd(n):
    return False if n == 0 else even(n - 1)


@pytest.mark.share(4)
@pytest.mark.parametrize("dtype", [np.int32, np.int64, np.float32, np.float64])
@pytest.mark.parametrize(("n", "want"), [((6, 7, 8, 9), (13, 21, 34, 55)), ((3, 7, 4, 5), (3, 21, 5, 8))])
@STRATEGIES
def test_fib(strategy: str, n: Any, want: Any, dtype: Any) -> None:
    with jax.enable_x64(dtype in (np.int64, np.float64)):
        result = fib.with_options(strategy=strategy)(np.array(n, dtype))
        assert result.tolist() == list(want)
        assert [fib.plain(k) for k in n] == list(want)


@STRATEGIES
def test_even_and_odd_including_zero(strategy: str) -> None:
    n = jnp.arange(7)
    assert even.with_options(strategy=strategy)(n).tolist() == [True, False] * 3 + [True]
    assert odd.with_options(strategy=strategy)(n).tolist() == [False, True] * 3 + [False]


@STRATEGIES
def test_gcd_with_its_parameters_swapped(strategy: str) -> None:
    @pcbatch.batch(strategy=strategy)
    def gcd(a, b):
        if a == b:
            return a
        if a < b:
            return gcd(b, a)
        return gcd(a - b, b)

    a, b = np.array([7, 12, 49, 1, 30]), np.array([9, 9, 56, 1, 4])
    assert gcd(a, b).tolist() == np.gcd(a, b).tolist()


@STRATEGIES
def test_one_armed_nested_and_constant_conditions(strategy: str) -> None:
    @pcbatch.batch(strategy=strategy)
    def f(n):
        answer = 1
        if n > 4:
            answer = 3
            if n > 50:
                answer = 5
        if True:
            answer += 10
        if False:
            answer = n.nothing
        return answer

    assert f(jnp.array([1, 5, 60, 3, 7])).tolist() == [11, 13, 15, 11, 13]


Pea = namedtuple("Pea", ["hull", "nut"])


@STRATEGIES
def test_pea_nuts(strategy: str) -> None:
    """A namedtuple with leaves of different rank through a loop, a helper and a recursive callee, and back."""

    def ripen(pea, weight):
        return Pea(pea.hull + jnp.sum(pea.nut), jnp.tanh(pea.nut @ weight))

    @pcbatch.batch
    def shell(pea, depth, weight):
        if depth <= 0:
            return ripen(pea, weight)
        return shell(shell(pea, depth - 1, weight), depth - 1, weight)

    @pcbatch.batch(in_axes=(0, 0, 0, None), strategy=strategy)
    def nuts(pea, count, depth, weight):
        while count > 0:
            hull, _ = pea = shell(pea, depth, weight)
            count -= 1 if hull < 100 else 2
        return pea

    rng = np.random.default_rng(0)
    pea = Pea(np.arange(4, dtype=np.float32), rng.normal(size=(4, 3)).astype(np.float32))
    count, depth = np.array([0, 1, 2, 3], np.int32), np.array([2, 0, 1, 2], np.int32)
    weight = rng.normal(size=(3, 3)).astype(np.float32)
    got = nuts(pea, count, depth, weight)
    for k in range(4):
        want = nuts.plain(Pea(*map(jnp.asarray, (pea.hull[k], pea.nut[k]))), count[k], depth[k], weight)
        for a, b in zip(got, want, strict=True):
            np.testing.assert_allclose(a[k], b, rtol=2e-5, atol=1e-5)


@STRATEGIES
def test_a_destructured_list_of_numbers(strategy: str) -> None:
    @pcbatch.batch(strategy=strategy)
    def f(n):
        a, b, c = [1, 2, 3]
        (d, [e, _]), *rest = ((n, [a, b]), c, n)
        return a + d, b, c, e, rest[1]

    assert [leaf.tolist() for leaf in f(jnp.array([5, 6]))] == [[6, 7], [2, 2], [3, 3], [1, 1], [5, 6]]
