"""Number theory, sequences and approximations."""

from __future__ import annotations

import math
from math import gcd

from tests.strangers.rows import Row, table

ROWS: list[Row] = []
row = table("numbers", ROWS)


@row((12,), (97,), (1,), (100,))
def prime_factors(n: int) -> list[int]:
    i = 2
    factors = []
    while i * i <= n:
        if n % i:
            i += 1
        else:
            n //= i
            factors.append(i)
    if n > 1:
        factors.append(n)
    return factors


@row((10,), (30,), (2,))
def sieve_of_eratosthenes(num: int) -> list[int]:
    if num <= 0:
        raise ValueError(f"{num}: Invalid input, please enter a positive integer.")
    sieve = [True] * (num + 1)
    prime = []
    start = 2
    end = int(math.sqrt(num))
    while start <= end:
        if sieve[start] is True:
            prime.append(start)
            for i in range(start * start, num + 1, start):
                if sieve[i] is True:
                    sieve[i] = False
        start += 1
    for j in range(end + 1, num + 1):
        if sieve[j] is True:
            prime.append(j)
    return prime


@row((2,), (91,), (97,), (1,))
def is_prime(number: int) -> bool:
    if not isinstance(number, int) or not number >= 0:
        raise ValueError("is_prime() only accepts positive integers")
    if 1 < number < 4:
        return True
    elif number < 2 or number % 2 == 0 or number % 3 == 0:
        return False
    for i in range(5, int(math.sqrt(number) + 1), 6):
        if number % i == 0 or number % (i + 2) == 0:
            return False
    return True


@row((5,), (10,), (3,))
def nth_prime(n):
    count = 0
    number = 1
    while count != n and number < 3:
        number += 1
        if is_prime(number):
            count += 1
    while count != n:
        number += 2
        if is_prime(number):
            count += 1
    return number


@row((6,), (28,), (12,), (1,))
def is_perfect(number: int) -> bool:
    if not isinstance(number, int):
        raise ValueError("number must be an integer")
    if number <= 0:
        return False
    return sum(i for i in range(1, number // 2 + 1) if number % i == 0) == number


@row((24, 36), (17, 5), (0, 5), new=False)
def greatest_common_divisor(a: int, b: int) -> int:
    return abs(b) if a == 0 else greatest_common_divisor(b % a, a)


@row((7, 3), (10, 4), (35, 15), new=False)
def extended_euclid(a, b):
    if b == 0:
        return (1, 0)
    (x, y) = extended_euclid(b, a % b)
    k = a // b
    return (y, x - k * y)


@row((10,), (1,), (36,))
def totients(n: int) -> list:
    is_prime = [True for i in range(n + 1)]
    totients = [i - 1 for i in range(n + 1)]
    primes = []
    for i in range(2, n + 1):
        if is_prime[i]:
            primes.append(i)
        for j in range(len(primes)):
            if i * primes[j] >= n:
                break
            is_prime[i * primes[j]] = False
            if i % primes[j] == 0:
                totients[i * primes[j]] = totients[i] * primes[j]
                break
            totients[i * primes[j]] = totients[i] * (primes[j] - 1)
    return totients


@row((3, 5, 7), (2, 10, 1000), (5, 0, 13), new=False)
def power_modulo(a: int, n: int, b: int) -> int:
    assert b != 0, "This cannot accept modulo that is == 0"
    if n == 0:
        return 1
    if n % 2 == 1:
        return (power_modulo(a, n - 1, b) * a) % b
    r = power_modulo(a, n // 2, b)
    return (r * r) % b


@row((10,), (5,), (1,), new=False)
def catalan(number: int) -> int:
    if not isinstance(number, int):
        raise TypeError(f"Input value of [number={number}] must be an integer")
    if number < 1:
        raise ValueError(f"Input value of [number={number}] must be > 0")
    current_number = 1
    for i in range(1, number):
        current_number *= 4 * i - 2
        current_number //= i + 1
    return current_number


@row((10,), (1,), (6,), new=False)
def factorial(number: int) -> int:
    if number != int(number):
        raise ValueError("factorial() only accepts integral values")
    if number < 0:
        raise ValueError("factorial() not defined for negative values")
    value = 1
    for i in range(1, number + 1):
        value *= i
    return value


@row((10,), (20,), (2,))
def fibonacci_list(n: int) -> list[int]:
    if n == 0:
        return [0]
    fib = [0, 1]
    for _ in range(n - 1):
        fib.append(fib[-1] + fib[-2])
    return fib


@row((60,), (13,), (1,))
def number_of_divisors(n: int) -> int:
    if n <= 0:
        raise ValueError("Only positive numbers are accepted")
    div = 1
    temp = 1
    while n % 2 == 0:
        temp += 1
        n = int(n / 2)
    div *= temp
    for i in range(3, int(math.sqrt(n)) + 1, 2):
        temp = 1
        while n % i == 0:
            temp += 1
            n = int(n / i)
        div *= temp
    if n > 1:
        div *= 2
    return div


@row((10,), (50,))
def twin_primes(n):
    return [(p, p + 2) for p in range(2, n - 1) if is_prime(p) and is_prime(p + 2)]


@row((12, 18), (7, 5), new=False)
def least_common_multiple(first_num: int, second_num: int) -> int:
    max_num = first_num if first_num >= second_num else second_num
    common_mult = max_num
    while (common_mult % first_num > 0) or (common_mult % second_num > 0):
        common_mult += max_num
    return common_mult


@row((6, 2), (5, 5), (10, 3), new=False)
def binomial(n: int, k: int) -> int:
    if n < k or k < 0:
        raise ValueError("Please enter positive integers for n and k where n >= k")
    res = 1
    for i in range(k):
        res *= n - i
        res //= i + 1
    return res


@row((2.0,), (10.0,), (0.5,), new=False)
def newton_sqrt(a):
    x = a
    while abs(x * x - a) > 1e-3:
        x = x - (x * x - a) / (2 * x)
    return x


@row((5,), (10,), (1,))
def juggler_sequence(number: int) -> list[int]:
    if number < 1:
        raise ValueError("bad")
    sequence = [number]
    while number != 1:
        if number % 2 == 0:
            number = math.floor(math.sqrt(number))
        else:
            number = math.floor(math.sqrt(number) * math.sqrt(number) * math.sqrt(number))
        sequence.append(number)
    return sequence


@row((3,), (10,))
def harmonic_series(n):
    series = []
    for temp in range(n):
        series.append(1 / (temp + 1))
    return sum(series)


@row((0.0, 10.0), (1.0, 3.0), new=False)
def simpson_rule(a, b):
    n = 10
    h = (b - a) / n

    def f(x):
        return x * x

    total = f(a) + f(b)
    for i in range(1, n):
        if i % 2 == 1:
            total += 4 * f(a + i * h)
        else:
            total += 2 * f(a + i * h)
    return total * h / 3


@row((0.0, 3.0), (1.0, 4.0), new=False)
def bisect_cube(a: float, b: float) -> float:
    def equation(x):
        return 10 - x * x * x

    if equation(a) * equation(b) >= 0:
        raise ValueError("Wrong space!")
    c = a
    while (b - a) >= 0.01:
        c = (a + b) / 2
        if equation(c) == 0.0:
            break
        if equation(c) * equation(a) < 0:
            b = c
        else:
            a = c
    return c


@row((2000,), (1900,), (2023,), new=False)
def is_leap(year):
    return year % 4 == 0 and (year % 100 != 0 or year % 400 == 0)


@row((0.5,), (2.0,))
def sigmoid(x):
    return 1 / (1 + math.exp(-x))


@row((48, 18), (17, 5), (100, 75))
def reduced_fraction(numerator, denominator):
    common = gcd(numerator, denominator)
    return numerator // common, denominator // common


@row((10,), (99,), (1000,))
def integer_square_root(n):
    low, high = 0, n
    while low <= high:
        mid = (low + high) // 2
        if mid * mid <= n < (mid + 1) * (mid + 1):
            return mid
        elif mid * mid < n:
            low = mid + 1
        else:
            high = mid - 1


@row((3, 7), (2, 9), (10, 3), new=False)
def ackermann_like_power(base, exponent):
    result = 1
    while exponent > 0:
        if exponent & 1:
            result *= base
        base *= base
        exponent >>= 1
    return result


@row((7.5, 2.0), (-7.5, 2.0), (9.0, -4.0), new=False)
def floor_and_remainder(a: float, b: float):
    whole, rest = divmod(a, b)
    return int(whole), rest, a % b, a // b


@row((-7, 2), (7, -2), (9, 4))
def truncated_division(a: int, b: int):
    q, r = divmod(a, b)
    return int(a / b), math.trunc(a / b), math.ceil(a / b), q, r, round(a / b)


@row((0.1, 1.0), (0.5, 4.0), (2.0, 9.0))
def logarithms_and_roots(x, y):
    return math.log(x) + math.log10(y) - math.log2(y), math.hypot(x, y), math.atan2(y, x), math.pow(x, y), math.exp(-x)


@row((5,), (0,), (12,), new=False)
def alternating_harmonic(terms: int) -> float:
    total = 0
    for k in range(terms):
        total += (-1) ** k / (2 * k + 1)
    return 4 * total


@row((6,), (28,), (12,))
def aliquot_chain(n):
    chain = [n]
    while len(chain) < 6 and chain[-1] > 1:
        chain.append(sum(d for d in range(1, chain[-1]) if chain[-1] % d == 0))
    return chain


@row((20,), (37,), (2,))
def sum_of_primes_below(limit):
    return sum(p for p in range(2, limit) if all(p % d for d in range(2, int(p**0.5) + 1)))


@row((14, 3), (5, 11), (8, 9), new=False)
def modular_inverse(a, m):
    for x in range(1, m):
        if (a * x) % m == 1:
            return x
    return -1
