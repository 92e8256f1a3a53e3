"""Results and variables that may be None."""

from __future__ import annotations

import math

from tests.strangers.numbers import is_prime
from tests.strangers.rows import Row, table

ROWS: list[Row] = []
row = table("optional", ROWS)


@row((18,), (11,), (2,))
def goldbach(n):
    for a in range(2, n):
        if is_prime(a) and is_prime(n - a):
            return a, n - a
    return None


@row(([0, 5, 7, 10, 15], 15), ([0, 5, 7, 10, 15], 6))
def linear_search(sequence, target):
    for index, item in enumerate(sequence):
        if item == target:
            return index
    return None


@row(([3, 8, 2], 5), ([1, 2], 9), ([10], 1))
def first_above(xs, bound):
    found = None
    for x in xs:
        if x > bound:
            found = x
            break
    if found is None:
        return -1
    return found


@row(([3, 8, 2],), ([5],), ([],))
def smallest_or_none(xs):
    best = None
    for x in xs:
        if best is None or x < best:
            best = x
    return best


@row((10, 4), (7, 0), (9, 3))
def safe_quotient(a, b):
    return None if b == 0 else a // b


def root_of(x):
    if x < 0:
        return None
    return math.sqrt(x)


@row((4.0, 9.0), (-1.0, 4.0), (1.0, -2.0))
def sum_of_roots(a, b):
    left, right = root_of(a), root_of(b)
    if left is None and right is None:
        return 0.0
    if left is not None and right is not None:
        return left + right
    return -1.0


@row((5,), (12,), (1,))
def last_prime_factor(n):
    last = None
    d = 2
    while n > 1:
        if n % d == 0:
            last = d
            n //= d
        else:
            d += 1
    return last or 0


@row(([2, 7, 4], 6), ([1, 2], 3), ([5, 5], 1))
def pair_with_sum(xs, target):
    for i in range(len(xs)):
        for j in range(i + 1, len(xs)):
            if xs[i] + xs[j] == target:
                return i, j
    return None


@row((6,), (5,), (16,))
def power_of_two_or_none(n):
    k = 0
    while n > 1:
        if n % 2:
            return
        n //= 2
        k += 1
    return k
