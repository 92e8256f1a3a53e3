"""Functions that calls give arrays of several shapes: one function for each tuple of shapes."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from typing import Any

import jax.numpy as jnp
import numpy as np
import pytest

import pcbatch

pytestmark = pytest.mark.promotion("standard")


def strassen(a, b):
    n = a.shape[0]
    if n == 1:
        return a * b
    h = n // 2
    a11, a12, a21, a22 = a[:h, :h], a[:h, h:], a[h:, :h], a[h:, h:]
    b11, b12, b21, b22 = b[:h, :h], b[:h, h:], b[h:, :h], b[h:, h:]
    m1 = strassen(a11 + a22, b11 + b22)
    m2, m3 = strassen(a21 + a22, b11), strassen(a11, b12 - b22)
    m4, m5 = strassen(a22, b21 - b11), strassen(a11 + a12, b22)
    m6, m7 = strassen(a21 - a11, b11 + b12), strassen(a12 - a22, b21 + b22)
    top = jnp.concatenate([m1 + m4 - m5 + m7, m3 + m5], axis=1)
    return jnp.concatenate([top, jnp.concatenate([m2 + m4, m1 - m2 + m3 + m6], axis=1)], axis=0)


def fft(x):
    n = len(x)
    if n == 1:
        return x
    even, odd = fft(x[::2]), fft(x[1::2])
    turned = jnp.exp(-2j * jnp.pi * jnp.arange(n // 2) / n) * odd
    return jnp.concatenate([even + turned, even - turned])


def merge(a, b):
    out = jnp.zeros(len(a) + len(b))
    i = j = 0
    for k in range(len(a) + len(b)):
        if j >= len(b) or (i < len(a) and a[i] <= b[j]):
            out = out.at[k].set(a[i])
            i += 1
        else:
            out = out.at[k].set(b[j])
            j += 1
    return out


def merge_sort(x):
    n = len(x)
    if n <= 1:
        return x
    return merge(merge_sort(x[: n // 2]), merge_sort(x[n // 2 :]))


def bitonic_merge(x, up):
    if len(x) == 1:
        return x
    h = len(x) // 2
    low, high = jnp.minimum(x[:h], x[h:]), jnp.maximum(x[:h], x[h:])
    if not up:
        low, high = high, low
    return jnp.concatenate([bitonic_merge(low, up), bitonic_merge(high, up)])


def bitonic_sort(x, up=True):
    if len(x) == 1:
        return x
    h = len(x) // 2
    return bitonic_merge(jnp.concatenate([bitonic_sort(x[:h], True), bitonic_sort(x[h:], False)]), up)


def karatsuba(a, b):
    n = len(a)
    if n == 1:
        return a * b
    h = n // 2
    low, high = karatsuba(a[:h], b[:h]), karatsuba(a[h:], b[h:])
    middle = karatsuba(a[:h] + a[h:], b[:h] + b[h:]) - low - high
    out = jnp.zeros(2 * n - 1, a.dtype).at[: n - 1].add(low)
    return out.at[h : h + n - 1].add(middle).at[n:].add(high)


def depth_by_lane(x, k):
    """A path that differs between lanes."""
    if len(x) == 1:
        return x[0] * k
    m = len(x) // 2
    left = depth_by_lane(x[:m], k + 1) if x[0] > 0 else 0.0
    right = depth_by_lane(x[m:], k)
    return left if left > right else right


def place(x, v):
    if len(x) == 0:
        return 0
    m = len(x) // 2
    if x[m] < v:
        return m + 1 + place(x[m + 1 :], v)
    return place(x[:m], v)


def squares(v):
    total = 0.0
    for x in v:
        total += x * x
    return total


def no_recursion(a, b):
    return squares(a) + 10 * squares(b) + squares(a)


def tails(x, n):
    if n == 0:
        return jnp.sum(x)
    return tails(x[1:], n - 1)


DRAW = np.random.default_rng(0)


def floats(*shape: int) -> Any:
    return DRAW.normal(size=shape).astype(np.float32)


CASES = [
    (strassen, floats(3, 4, 4), floats(3, 4, 4)),
    (fft, floats(3, 8).astype(np.complex64)),
    (merge_sort, floats(4, 7)),
    (bitonic_sort, floats(3, 8)),
    (karatsuba, DRAW.integers(0, 9, (3, 8)), DRAW.integers(0, 9, (3, 8))),
    (depth_by_lane, floats(5, 6), np.arange(5)),
    (place, np.sort(floats(5, 9), axis=1), floats(5)),
    (no_recursion, floats(3, 4), floats(3, 2)),
    (tails, floats(5, 3), np.arange(5)),
]


@pytest.mark.share(2)
@pytest.mark.parametrize("case", CASES, ids=lambda case: case[0].__name__)
def test_as_plain_python(case: tuple[Any, ...]) -> None:
    f, *columns = case
    got = pcbatch.batch(f)(*map(jnp.asarray, columns))
    lanes = zip(*columns, strict=True)
    want = [f(*(jnp.asarray(x) if np.ndim(x) else x.item() for x in example)) for example in lanes]
    np.testing.assert_allclose(got, np.array(want), rtol=1e-4, atol=1e-5)


def functions(f: Callable[..., Any], *args: Any) -> list[str]:
    return [
        line.split("(")[0] for line in pcbatch.batch(f).lower(*args).as_text("cfg").splitlines() if "func @" in line
    ]


def test_one_function_for_each_shape() -> None:
    names = functions(fft, jnp.zeros((2, 8), jnp.complex64))
    assert names == ["func @fft", "func @fft.shape2", "func @fft.shape3", "func @fft.shape4"]


def test_calls_of_one_shape_are_of_one_function() -> None:
    assert functions(tails, jnp.zeros((2, 2)), jnp.arange(2)) == [
        "func @tails",
        "func @tails.shape2",
        "func @tails.shape3",
    ]


def test_instances_of_a_function_that_nobody_calls_any_more() -> None:
    def total(a, b):
        m, q = {}, deque()
        for _ in range(b % 4):
            if stored(m, q) > 1:
                continue
            q[0] = drawn(m, deque([a], maxlen=3))
            q.reverse()
        return sum(sum(v) for v in m.values())

    def drawn(m, q):
        if 1 in m:
            m[1].append(0)
        else:
            m[1] = [stored(m, q)]
        return q.popleft() if q else 1

    def stored(m, q):
        m[1] = [3]
        for k, row in m.items():
            q.extendleft([len(m.get(max(row) % 97, [])), k])
        return sum(len(v) for v in m.values())

    xs = jnp.arange(4)
    result = pcbatch.batch(total).run(xs, xs)
    for lane in range(4):
        try:
            assert result.value[lane] == total(lane, lane)
        except IndexError:
            assert result.status[lane] == pcbatch.Status.ERROR
