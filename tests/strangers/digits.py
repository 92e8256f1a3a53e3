"""Numbers as texts of digits."""

from __future__ import annotations

import math

from tests.strangers.rows import Row, table

ROWS: list[Row] = []
row = table("digits", ROWS)


@row((153,), (370,), (200,), (9474,))
def armstrong_number(n: int) -> bool:
    if not isinstance(n, int) or n < 1:
        return False
    total = 0
    number_of_digits = 0
    temp = n
    number_of_digits = len(str(n))
    temp = n
    while temp > 0:
        rem = temp % 10
        total += rem**number_of_digits
        temp //= 10
    return n == total


@row((100,), (9,), (-12345,))
def digit_sum_of_text(n: int) -> int:
    return sum(int(c) for c in str(abs(n)))


@row((25,), (37,))
def ones_in_binary_text(number):
    return bin(number).count("1")


@row((12321,), (123,), (7,))
def is_palindrome_of_text(n):
    return str(n) == str(n)[::-1]


@row((12345,), (900,), (7,))
def reverse_number(n):
    return int(str(n)[::-1])


@row((9875,), (0,), (38,))
def digital_root(n):
    while n >= 10:
        n = sum(map(int, str(n)))
    return n


@row((1234,), (505,), (9,))
def list_of_digits(n):
    return [int(d) for d in str(n)]


@row((1122,), (777,), (123,))
def count_a_digit(n):
    return str(n).count("7") + len(str(n))


@row((10,), (255,), (1,))
def bits_of_text(n):
    return len(bin(n)) - 2, bin(n).count("1"), int(bin(n)[2:])


@row((145,), (40585,), (10,))
def is_sum_of_factorials(number):
    return sum(math.factorial(int(digit)) for digit in str(number)) == number


@row((7992739,), (49927398,), (1234,))
def luhn(number):
    total = 0
    for place, digit in enumerate(reversed(str(number))):
        value = int(digit)
        if place % 2 == 1:
            value *= 2
            if value > 9:
                value -= 9
        total += value
    return total % 10 == 0


@row((197,), (23,), (4,))
def is_circular_prime(n):
    def prime(k):
        if k < 2:
            return False
        for d in range(2, int(k**0.5) + 1):
            if k % d == 0:
                return False
        return True

    text = str(n)
    for i in range(len(text)):
        if not prime(int(text[i:] + text[:i])):
            return False
    return True


@row((25, 32), (37, 50), (-1, 3))
def binary_and(a: int, b: int) -> str:
    if a < 0 or b < 0:
        raise ValueError("the value of both inputs must be positive")
    x, y = str(bin(a))[2:], str(bin(b))[2:]
    width = max(len(x), len(y))
    return "0b" + "".join(str(int(c == "1" and d == "1")) for c, d in zip(x.zfill(width), y.zfill(width)))


@row((15,), (9,), (7,))
def fizz_buzz(n):
    return ["Fizz" * (k % 3 == 0) + "Buzz" * (k % 5 == 0) or str(k) for k in range(1, n + 1)]
