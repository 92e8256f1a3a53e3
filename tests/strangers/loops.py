"""Loops of every kind over numbers and lists."""

from __future__ import annotations

from itertools import chain, count, repeat

from tests.strangers.rows import FIVES, LISTS, Row, table

ROWS: list[Row] = []
row = table("loops", ROWS)


@row((11,), (27,), (1,))
def collatz_sequence(n: int) -> list:
    sequence = [n]
    while n != 1:
        if n % 2 == 1:
            n = 3 * n + 1
        else:
            n //= 2
        sequence.append(n)
    return sequence


@row((100,), (9,), (12345,), new=False)
def sum_of_digits(n: int) -> int:
    n = abs(n)
    res = 0
    while n > 0:
        res += n % 10
        n //= 10
    return res


@row((121,), (123,), (-121,), (0,), new=False)
def is_int_palindrome(num: int) -> bool:
    if num < 0:
        return False
    num_copy = num
    rev_num = 0
    while num > 0:
        rev_num = rev_num * 10 + (num % 10)
        num //= 10
    return num_copy == rev_num


@row((25,), (10,), (0,))
def binary_digits(n):
    if n == 0:
        return [0]
    bits = []
    while n:
        n, r = divmod(n, 2)
        bits.insert(0, r)
    return bits


@row((5,), (1,), (8,))
def pascal_triangle(num_rows):
    triangle = []
    for r in range(num_rows):
        row = [1] * (r + 1)
        for c in range(1, r):
            row[c] = triangle[r - 1][c - 1] + triangle[r - 1][c]
        triangle.append(row)
    return triangle


@row(*LISTS)
def prefix_sums(xs):
    total = 0
    out = []
    for x in xs:
        total += x
        out.append(total)
    return out


@row(([7, 1, 5, 3, 6, 4],), ([7, 6, 4, 3, 1, 0],))
def max_profit(prices):
    if not prices:
        return 0
    min_price = prices[0]
    max_profit = 0
    for price in prices:
        min_price = min(price, min_price)
        max_profit = max(price - min_price, max_profit)
    return max_profit


@row(*FIVES)
def max_subarray_sum(arr):
    if not arr:
        return 0
    max_sum = float("-inf")
    curr_sum = 0
    for num in arr:
        curr_sum = max(num, curr_sum + num)
        max_sum = max(max_sum, curr_sum)
    return max_sum


@row(([1.0, 2.0, 3.0], 2.0), ([0.5, 0.0, 1.0], 3.0), new=False)
def horner(poly, x):
    result = 0.0
    for coeff in reversed(poly):
        result = result * x + coeff
    return result


@row(([1, 2, 3, 4, 5, 6], 3), ([9, 8, 1, 1, 1, 7], 2))
def largest_window(array, k):
    if len(array) < k or k < 0:
        raise ValueError("Invalid Input")
    max_sum = current_sum = sum(array[:k])
    for i in range(len(array) - k):
        current_sum = current_sum - array[i] + array[i + k]
        max_sum = max(max_sum, current_sum)
    return max_sum


@row(([1, 2, 3], [4, 5, 6]), ([7], [8]), ([0, 1], [1, 0]))
def dot_product(a, b):
    return sum(x * y for x, y in zip(a, b))


@row(([4, 8, 15],), ([1],), ([2, 2, 2, 2],))
def weighted_positions(xs):
    total = 0
    for place, x in enumerate(xs, start=1):
        if x % 2:
            continue
        total += place * x
    else:
        total += 1000
    return total


@row((30,), (7,), (1,), new=False)
def first_composite_or_none(limit):
    for n in range(2, limit):
        for d in range(2, n):
            if n % d == 0 and d > 2:
                break
        else:
            continue
        break
    else:
        return -1
    return n * 100 + d


@row(([1, 5, 2, 8, 3],), ([9, 1],), ([4],))
def longest_run_upwards(xs):
    best = run = 1
    for previous, current in zip(xs, xs[1:]):
        run = run + 1 if current > previous else 1
        best = max(best, run)
    return best


@row(([2, 4, 6],), ([2, 3],), ([1],))
def any_and_all(xs):
    return (
        any(x > 4 for x in xs),
        all(x % 2 == 0 for x in xs),
        max(x * x for x in xs),
        min(xs, key=lambda x: abs(x - 4)),
    )


@row((3, 4), (1, 1), (5, 2), new=False)
def count_lattice_points(a, b):
    count = 0
    for x in range(-a, a + 1):
        for y in range(-b, b + 1):
            if x * x * b * b + y * y * a * a <= a * a * b * b:
                count += 1
    return count


@row((10, 3), (7, 2), (1, 5))
def josephus(n, k):
    people = list(range(1, n + 1))
    place = 0
    while len(people) > 1:
        place = (place + k - 1) % len(people)
        people.pop(place)
    return people[0]


@row((6,), (1,), (0,), new=False)
def fibonacci_pair(n):
    a, b = 0, 1
    for _ in range(n):
        a, b = b, a + b
    return a


@row((0.0, 3), (1.0, 6))
def euler_method(y, steps):
    t = 0.0
    path = [y]
    while steps:
        y += 0.1 * (t - y)
        t += 0.1
        path += [y]
        steps -= 1
    return path


@row(([5, 6, 7], 1), ([], 0), ([4, 0, 3, 3], -2))
def endless_beside_lists(xs, k):
    total = []
    for i, x in zip(count(k, -3), xs):
        total.append(i * x)
    for x, (i, y) in zip(xs, enumerate(repeat(k))):
        total.append(x + i * y)
    weighted = sum(x * w for x, w in zip(xs, repeat(k))), list(map(lambda x, i: x * i, xs, count(start=k)))
    made = [a * b for a, b in zip((2 * i for i in count()), xs)], list(zip(chain([k], count(7)), xs))
    return total, weighted, made, list(zip(repeat(k), count(2), xs)), [*zip(xs, count())]


@row((1,), (5,), (9,))
def endless_until_it_breaks(n):
    out = []
    for i in count(start=3):
        if i > n + 4:
            break
        out.append(i)
    for i, x in enumerate(repeat(n)):
        if i * x > 20:
            break
    for k in repeat(2):
        n += k
        if n > 10:
            break
    for y in count(0.5, 0.2):
        if y > 1:
            break
    return out, i, n, y
