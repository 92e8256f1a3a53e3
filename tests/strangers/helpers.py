"""Helpers without a decorator, nested functions, lambdas and generators."""

from __future__ import annotations

import functools
import math
from functools import cache

from tests.strangers.rows import Row, table

ROWS: list[Row] = []
row = table("helpers", ROWS)


@row((220, 284), (10, 12))
def are_amicable(a, b):
    def divsum(n):
        total = 0
        for i in range(1, n):
            if n % i == 0:
                total += i
        return total

    return divsum(a) == b and divsum(b) == a


@row((10,), (20,), (2,))
def fibonacci_with_a_cache(n: int) -> int:
    cache = {}

    def rec(num):
        if num in cache:
            return cache[num]
        if num < 2:
            return num
        cache[num] = rec(num - 1) + rec(num - 2)
        return cache[num]

    return rec(n)


def clamp(x, low=0, high=10):
    return low if x < low else high if x > high else x


@row((5, 3), (-1, 20), (12, 12))
def clamped_sum(a, b):
    return clamp(a) + clamp(b, high=15) + clamp(low=3, x=a)


@row((5,), (9,), (1,))
def nested_counter(n):
    count = 0

    def step(k):
        nonlocal count
        count += 1
        return k // 2 if k % 2 == 0 else 3 * k + 1

    while n != 1:
        n = step(n)
    return count


@row((2.0,), (3.0,), (0.5,), new=False)
def newton_with_lambdas(a):
    f = lambda x: x * x - a
    df = lambda x: 2 * x
    x = a + 1.0
    for _ in range(20):
        if abs(f(x)) < 1e-4:
            break
        x -= f(x) / df(x)
    return x


@row((10,), (3,), (0,))
def sum_of_a_generator(n):
    def odd_squares(limit):
        k = 0
        while k < limit:
            if k % 2:
                yield k * k
            k += 1

    return sum(odd_squares(n))


@row((4,), (6,), (1,))
def hanoi_moves(n):
    moves = []

    def move(disks, source, target, spare):
        if disks == 0:
            return
        move(disks - 1, source, spare, target)
        moves.append((source, target))
        move(disks - 1, spare, target, source)

    move(n, 0, 2, 1)
    return moves


@row((3,), (10,), (0,))
def is_even_mutually(n):
    def even(k):
        return True if k == 0 else odd(k - 1)

    def odd(k):
        return False if k == 0 else even(k - 1)

    return even(n)


@row((10,), (15,), (1,))
def cached_fibonacci(n):
    @cache
    def fib(k):
        return k if k < 2 else fib(k - 1) + fib(k - 2)

    return fib(n)


@row(([3, 1, 2],), ([5],), refused="PCB306")
def map_filter_reduce(xs):
    doubled = map(lambda x: x * 2, xs)
    kept = filter(lambda x: x > 2, doubled)
    return functools.reduce(lambda a, b: a + b, kept, 0)


def append_twice(target, value):
    target.append(value)
    target.append(value + 1)


@row((3,), (1,), (0,))
def helper_changes_a_list(n):
    out = []
    for k in range(n):
        append_twice(out, k)
    return out


@row((1.0, 2.0, 0.5), (0.0, 3.0, 0.25))
def integrate_by_callback(a, b, h):
    def integrate(f, start, stop, width):
        total = 0.0
        while start < stop:
            total += f(start) * width
            start += width
        return total

    return integrate(lambda x: x * x, a, b, h) + integrate(math.sin, a, b, h)


@row(([4, 6],), ([2, 3, 5],), ([7],))
def least_common_multiple_of_all(numbers):
    def lcm(a, b):
        greater = max(a, b)
        while greater % a or greater % b:
            greater += 1
        return greater

    return functools.reduce(lcm, numbers)


@row(([4, 6],), ([2, 3, 5],), ([],))
def product_by_reduce(numbers):
    return functools.reduce(lambda a, b: a * b, numbers)


@row(([4, 6],), ([2, 3, 5],), ([],))
def collected_by_reduce(numbers):
    total, parts = functools.reduce(lambda kept, x: (kept[0] + x, kept[1] + [x * x]), numbers, (0, []))
    return total, parts


@row((6,), (1,), (0,))
def collatz_sequence(n: int):
    if not isinstance(n, int) or n < 1:
        raise Exception("Sequence only defined for positive integers")
    yield n
    while n != 1:
        n = n // 2 if n % 2 == 0 else 3 * n + 1
        yield n


@row(([1, 2, 3],), ([4],))
def arrangements(xs):
    if len(xs) <= 1:
        yield xs
    else:
        for rest in arrangements(xs[1:]):
            for k in range(len(xs)):
                yield rest[:k] + xs[:1] + rest[k:]
