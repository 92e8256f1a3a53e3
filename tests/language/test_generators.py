"""Generator functions that a batch runs themselves, and ones that go over themselves."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import jax.numpy as jnp
import pytest

import pcbatch

pytestmark = pytest.mark.share(2)


def collatz(n):
    if n < 1:
        raise ValueError("positive integers only")
    yield n
    while n != 1:
        n = n // 2 if n % 2 == 0 else 3 * n + 1
        yield n


def pairs(n):
    yield from ((k, k * k) for k in range(n) if k % 2)
    for k in range(n):
        if k == 3:
            return
        yield k, -k


def inorder(n):
    if n > 0:
        yield from inorder(n - 1)
        yield n
        yield from inorder(n - 2)


def returns_a_value(n):
    for k in range(n):
        if k == 3:
            return k + 40
        yield k
    return 5


def counted(n):
    return [k * 10 + max(inorder(n + 1)) for k, _ in enumerate(inorder(n))]


def permutations(xs):
    if len(xs) <= 1:
        yield xs
    else:
        for p in permutations(xs[1:]):
            for k in range(len(xs)):
                yield p[:k] + xs[0:1] + p[k:]


def sums(xs, k):
    if k == len(xs):
        yield 0
    else:
        for total in sums(xs, k + 1):
            yield total
            yield total + xs[k]


@pytest.mark.parametrize("fn", [collatz, pairs, inorder, counted, returns_a_value])
def test_the_result_is_the_list_of_what_it_yields(fn: Callable[..., Any]) -> None:
    numbers = [3, 1, 5]
    assert pcbatch.batch(fn)(jnp.array(numbers)).tolist() == [list(fn(n)) for n in numbers]


def test_generators_that_go_over_themselves() -> None:
    lists = [[1, 2, 3], [4]]
    assert pcbatch.batch(permutations)(pcbatch.ragged(lists)).tolist() == [list(permutations(xs)) for xs in lists]
    found = pcbatch.batch(sums)(pcbatch.ragged(lists), jnp.array([0, 0]))
    assert found.tolist() == [list(sums(xs, 0)) for xs in lists]


def merged(lo, n):
    def merge(lo, n, step):
        if step * 2 < n:
            yield from merge(lo, n, step * 2)
            for k in range(lo + step, lo + n - step, step * 2):
                yield k, k + step
        else:
            yield lo, lo + step

    if n > 1:
        yield from merged(lo, n // 2)
        yield from merge(lo, n, 1)


def inside(n):
    def moves(k, a, b):
        if k:
            yield from moves(k - 1, a, 3 - a - b)
            yield a, b
            yield from moves(k - 1, 3 - a - b, b)

    def below(k):
        while k:
            yield k
            k -= 1

    def twice(values):
        return sum(values) + sum(values)

    taken = [*moves(n, 0, 2), (n, n)], (0, 1) in moves(n, 0, 2), n in below(n), n + 1 not in below(n)
    return taken, twice(below(n)), list(merged(0, 1 << n))


def test_generators_inside_functions_go_over_themselves() -> None:
    got = pcbatch.batch(inside)(jnp.array([1, 3]))
    for lane, n in enumerate([1, 3]):
        (moves, *found), twice, layers = inside(n)
        assert got[0][0].tolist()[lane] == moves and [bool(one[lane]) for one in got[0][1:]] == found
        assert int(got[1][lane]) == twice == n * (n + 1) // 2 and got[2].tolist()[lane] == layers


def halves(f, a, b, depth):
    if depth == 0 or f(a) < f(b):
        yield a
    else:
        yield from halves(f, a, (a + b) // 2, depth - 1)
        yield from halves(f, (a + b) // 2, b, depth=depth - 1)


def of_a_function(n):
    def height(x):
        return x * n % 7

    power = lambda x: x * x % (n + 1)
    return sum(halves(power, n, n + 9, 3)) * 100 + max(halves(height, n, n + 5, 2))


def test_generators_that_go_over_themselves_hand_on_functions() -> None:
    assert pcbatch.batch(of_a_function)(jnp.arange(1, 8)).tolist() == [of_a_function(n) for n in range(1, 8)]


def test_a_lane_may_fail() -> None:
    assert pcbatch.batch(collatz).run(jnp.array([2, 0])).value.tolist() == [[2, 1], None]


def elements(xs, k):
    if k < len(xs):
        yield xs[k]
        yield from elements(xs, k + 1)


def lengthened(xs):
    total = 0
    for x in elements(xs, 0):
        if x == 1 and len(xs) < 5:
            xs.append(5)
        total += x
    return total


def shared(n):
    found = []
    for k in range(n):
        found.append(k)
        yield found


@pytest.mark.parametrize(("fn", "args"), [(lengthened, pcbatch.ragged([[1, 2], [3]])), (shared, jnp.array([2, 3]))])
def test_what_python_would_see_of_later_changes_is_refused(fn: Callable[..., Any], args: Any) -> None:
    with pytest.raises(pcbatch.CompileError, match="PCB330"):
        pcbatch.batch(fn).lower(args)


class Twice:
    def __init__(self, n):
        self.n = n

    def __iter__(self):
        for k in range(self.n):
            for _ in range(2):
                yield k


def test_a_variable_without_a_name_in_a_class() -> None:
    def total(n):
        return sum(Twice(n))

    assert pcbatch.batch(total)(jnp.arange(4)).tolist() == [total(n) for n in range(4)]
