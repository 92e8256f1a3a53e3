"""Helpers without a decorator, in a module of their own."""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterator
from typing import Any


def gcd(a: Any, b: Any) -> Any:
    while b:
        a, b = b, a % b
    return a


def is_prime(n: Any) -> bool:
    """Tell whether n is prime."""
    if n < 2:
        return False
    d = 2
    while d * d <= n:
        if n % d == 0:
            return False
        d += 1
    return True


def fib(n: Any) -> Any:
    if n < 2:
        return n
    return fib(n - 1) + fib(n - 2)


def even(n: Any) -> bool:
    return True if n == 0 else odd(n - 1)


def odd(n: Any) -> bool:
    return False if n == 0 else even(n - 1)


def step(n: Any) -> Any:
    if n % 2 == 0:
        return n // 2
    return 3 * n + 1


def collatz(n: Any, limit: int = 1000) -> Any:
    steps = 0
    while n != 1 and steps < limit:
        n = step(n)
        steps += 1
    return steps


def clamp(x: Any, low: Any = 0, *, high: Any = 5) -> Any:
    if x < low:
        return low
    if x > high:
        return high
    return x


clamp3 = functools.partial(clamp, high=3)


@functools.cache
def paths(i: Any, j: Any) -> Any:
    if i == 0 or j == 0:
        return 1
    return paths(i - 1, j) + paths(i, j - 1)


def handed_on(fn: Callable[..., Any]) -> Callable[..., Any]:
    @functools.wraps(fn)
    def wrapper(*args: Any, **options: Any) -> Any:
        return fn(*args, **options)

    return wrapper


@handed_on
def absolute(x: Any, scale: Any = 1) -> Any:
    if x < 0:
        return -x * scale
    return x * scale


def bisect(f: Callable[[Any], Any], low: Any, high: Any) -> Any:
    while high - low > 1e-3:
        middle = (low + high) / 2
        if f(middle) > 0:
            high = middle
        else:
            low = middle
    return low


def applied(f: Callable[[Any], Any], x: Any) -> Any:
    if x > 2:
        return f(x)
    return f(x + 1)


class TooLarge(Exception):
    """An exception of the user's own."""


def check(n: Any) -> None:
    """Refuse large numbers."""
    if n > 100:
        raise TooLarge(f"{n} is too large")
    if n == 50:
        return
    assert n != 13


def divisors(n: Any) -> Iterator[Any]:
    d = 1
    while d <= n:
        if n % d == 0:
            yield d
        d += 1


def pairs(n: Any) -> Iterator[tuple[Any, int]]:
    for i in range(n):
        if i % 3 == 2:
            yield i, 1
            continue
        yield i, 2
        if i > 5:
            return


def chained(n: Any) -> Iterator[Any]:
    yield 100
    yield from (i * w for i, w in pairs(n))
    yield 200


class Walker:
    """An object whose methods branch."""

    stride = 2

    def __init__(self, goal: int) -> None:
        self.goal = goal

    def __call__(self, x: Any) -> Any:
        while x < self.goal:
            x += self.stride
        return x

    def twice(self, x: Any) -> Any:
        return self(self(x) + 3)

    @classmethod
    def first(cls, x: Any) -> Any:
        if x > 3:
            return cls.stride
        return x

    @staticmethod
    def last(x: Any) -> Any:
        return 0 if x > 3 else 1


def no_twelve(n: int) -> None:
    """Assert; pytest leaves the message of this file as it is."""
    assert n != 12, f"n is {n}"
