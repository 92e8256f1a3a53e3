"""Methods of objects that a lane makes: they are compiled along where they branch on values of the lane."""

from __future__ import annotations

from typing import Any

import jax.numpy as jnp
import numpy as np
import pytest

import pcbatch


class Cache:
    """A cache that drops what was used longest ago."""

    def __init__(self, capacity):
        self.capacity, self.pages, self.misses = capacity, [], 0

    def visit(self, page):
        if page in self.pages:
            self.pages.remove(page)
        else:
            self.miss()
            if len(self.pages) == self.capacity:
                self.pages.pop(0)
        self.pages.append(page)

    def miss(self):
        if self.misses >= 0:
            self.misses += 1


class Walker:
    """A position that steps down while it is high."""

    def __init__(self, x):
        self.x = x

    def step(self, k=1):
        if self.x > 2:
            self.x -= k
        return self.x * 2


class Base:
    """A class whose method a subclass has as well."""

    def __init__(self, x):
        self.x = x

    def worth(self):
        return self.x if self.x > 0 else -self.x


class Double(Base):
    """A subclass with a method of its own."""

    def worth(self):
        return 2 * self.x if self.x > 0 else 0


def test_a_class_with_a_list() -> None:
    @pcbatch.batch
    def misses(pages, capacity):
        cache = Cache(capacity)
        for page in pages:
            cache.visit(page)
        return cache.misses

    pages = np.array([[1, 2, 1, 3], [1, 1, 1, 2]])
    assert misses(pages, np.array([2, 1])).tolist() == [
        misses.plain(row, n) for row, n in zip(pages, (2, 1), strict=True)
    ]


def test_a_method_with_a_result_changes_its_object() -> None:
    @pcbatch.batch
    def walk(n):
        p = Walker(n)
        total = 0
        for _ in range(3):
            total += p.step(k=1)
        return total, p.x

    total, x = walk(jnp.array([1, 5, 9]))
    assert list(zip(total.tolist(), x.tolist(), strict=True)) == [walk.plain(n) for n in (1, 5, 9)]


def test_the_class_of_an_object_decides() -> None:
    @pcbatch.batch
    def both(n):
        a, b = 0, 0
        one = Base(n)
        other = Double(n)
        a = one.worth()
        b = other.worth()
        return a * 100 + b

    assert both(jnp.array([3, -4])).tolist() == [both.plain(3), both.plain(-4)]


class Twice:
    def __init__(self):
        self.total = 0

    def update(self, it):
        self.total += sum(it) * 100 + sum(it)

    def join(self, it):
        return sum(it) * 100 + sum(it)

    def __iadd__(self, it):
        self.total += sum(it) * 100 + sum(it)
        return self


def _methods_that_go_over_it_twice(n):
    twice = Twice()
    twice.update(reversed([n, 1, 2]))
    twice += reversed([n, 5])
    return twice.total + twice.join(reversed(list(range(n))))


def test_methods_of_the_users_get_an_iterator_whatever_their_name() -> None:
    found = pcbatch.batch(_methods_that_go_over_it_twice)(np.arange(5))
    assert found.tolist() == [_methods_that_go_over_it_twice(n) for n in range(5)]


class Shares:
    """Numbers divided among so many, with -7 where there is nobody."""

    def __init__(self, n):
        self.n = n

    def __getitem__(self, k):
        try:
            return (10 + k) // self.n
        except ZeroDivisionError:
            return -7

    def __iter__(self):
        try:
            first = 10 // self.n
        except ZeroDivisionError:
            first = -7
        return iter([first, first + 1])


def test_what_python_calls_for_a_subscript_may_catch_exceptions() -> None:
    def known_and_computed(n):
        shares = Shares(n)
        return shares[0] + 100 * shares[n]

    assert pcbatch.batch(known_and_computed)(np.arange(4)).tolist() == [known_and_computed(n) for n in range(4)]


def _summed(n):
    total = 0
    for share in Shares(n):
        total += share
    return total


def _unpacked(n):
    first, second = Shares(n)
    return first + second


@pytest.mark.parametrize("function", [_summed, _unpacked, lambda n: sum(list(Shares(n)))])
def test_what_python_calls_for_a_loop_may_not(function: Any) -> None:
    with pytest.raises(pcbatch.CompileError) as info:
        pcbatch.batch(function)(np.arange(4))
    assert info.value.diagnostics[0].code == "PCB305"
