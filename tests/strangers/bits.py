"""Tricks with bits."""

from __future__ import annotations

from tests.strangers.rows import Row, table

ROWS: list[Row] = []
row = table("bits", ROWS)


@row((25,), (0,), (255,), new=False)
def count_set_bits(n):
    if n < 0:
        raise ValueError("the value of input must not be negative")
    result = 0
    while n:
        n &= n - 1
        result += 1
    return result


@row((8,), (7,), (1,), new=False)
def is_power_of_two(number: int) -> bool:
    if number < 0:
        raise ValueError("number must not be negative")
    return number & (number - 1) == 0


@row((4,), (3,))
def gray_code(n):
    return [i ^ (i >> 1) for i in range(1 << n)]


@row((13,), (1,), (1023,), new=False)
def highest_set_bit(number: int) -> int:
    if not isinstance(number, int):
        raise TypeError("Input value must be an 'int' type")
    position = 0
    while number:
        position += 1
        number >>= 1
    return position


@row((43,), (8,), (1,), new=False)
def reverse_eight_bits(n):
    result = 0
    for _ in range(8):
        result = (result << 1) | (n & 1)
        n >>= 1
    return result


@row(([4, 1, 2, 1, 2],), ([7],), ([3, 3, 9],))
def single_number(nums):
    result = 0
    for n in nums:
        result ^= n
    return result


@row((5, 9), (0, 7), (12, 12), new=False)
def add_without_plus(a, b):
    while b != 0:
        carry = a & b
        a = a ^ b
        b = carry << 1
    return a


@row((1, 4), (7, 0), (93, 73))
def hamming_distance(x, y):
    return bin(x ^ y).count("1")


@row(([1, 2, 3],), ([4, 5],))
def subsets_by_masks(nums):
    out = []
    for mask in range(1 << len(nums)):
        out.append([nums[i] for i in range(len(nums)) if mask & (1 << i)])
    return out


@row((10,), (1,), (64,))
def next_power_of_two(n):
    power = 1
    while power < n:
        power <<= 1
    return power, n.bit_length(), n & -n, ~n
