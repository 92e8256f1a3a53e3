"""Exceptions: raised, caught, and cleaned up after."""

from __future__ import annotations

from tests.strangers.rows import Row, table

ROWS: list[Row] = []
row = table("errors", ROWS)


@row(([1, 2, 3], 2), ([5, 6, 9], 4))
def mean_or_minus_one(xs, k):
    try:
        return sum(xs) // k
    except ZeroDivisionError:
        return -1


@row((10, 2), (7, 0), (-3, 2))
def quotient_or_default(a, b):
    try:
        return a // b
    except ZeroDivisionError:
        return 0


@row(([1, 2, 3], 1), ([1, 2, 3], 9), ([], 0))
def item_or_default(xs, i):
    try:
        return xs[i]
    except IndexError:
        return -1


@row(([1, 2, 3], 2), ([4], 7))
def lookup_in_a_dict(xs, key):
    table = {}
    for place, x in enumerate(xs):
        table[x] = place
    try:
        return table[key]
    except KeyError:
        return -1


@row((5,), (-1,), (0,), new=False)
def factorial_that_refuses(n):
    if n < 0:
        raise ValueError("factorial of a negative number")
    return 1 if n <= 1 else n * factorial_that_refuses(n - 1)


@row((4.0,), (-4.0,), (0.0,), new=False)
def root_with_an_assert(x):
    assert x >= 0, f"{x} has no root"
    return x**0.5


@row(([1, 2], 5), ([3, 4], 1))
def list_index_that_fails(xs, i):
    return xs[i] * 2


@row((12, 4), (1, 0), (9, 2))
def cleaned_up(a, b):
    log = []
    try:
        result = a // b
    except ZeroDivisionError:
        result = -1
        log.append(1)
    else:
        log.append(2)
    finally:
        log.append(3)
    return result, log


@row(([3, 0, 2],), ([1],))
def skip_what_fails(xs):
    total = 0
    for x in xs:
        try:
            total += 12 // x
        except ZeroDivisionError:
            continue
    return total


def checked(n):
    if n > 100:
        raise ValueError("too large")
    if n < 0:
        raise IndexError("too small")
    return n


@row((5,), (500,), (-5,))
def errors_of_a_helper(n):
    try:
        return checked(n)
    except (ValueError, IndexError):
        return 0


@row(([2, 3],), ([],))
def largest_of_nothing_fails(xs):
    return max(xs) - min(xs)


@row(([5, 2], 2), ([5, 2], 9))
def remove_that_fails(xs, x):
    xs.remove(x)
    return xs
