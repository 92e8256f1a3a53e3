"""Control flow without calls: if, while, for, break, continue, else, early return, short circuits."""

from __future__ import annotations

import jax.numpy as jnp

from tests.programs.registry import bools, floats, ints, program


@program(ints(-3, 12))
def countdown(n):
    total = 0
    while n > 0:
        total += n
        n -= 1
    return total


@program(floats(-2, 2))
def for_range_that_surely_runs(x):
    for i in range(40):
        x = x * 0.5 + i
        y = x + 1
        if x > 3:
            break
    return x, y, i


@program(ints(0, 12))
def while_else(n):
    steps = 0
    while n > 0:
        if n == 7:
            break
        n -= 1
        steps += 1
    else:
        steps += 100
    return steps


@program(ints(-2, 9))
def for_range(n):
    total = 0
    for i in range(n):
        total += i * i
    return total


@program(ints(-4, 4), ints(-4, 9))
def for_range_two_bounds(low, high):
    total = 0
    for i in range(low, high):
        total = total * 2 + i
    return total


@program(ints(-4, 9), ints(-9, 4))
def for_range_negative_step(high, low):
    count, last = 0, -100
    for i in range(high, low, -2):
        count += 1
        last = i
    return count, last


@program(ints(0, 20))
def for_range_step(n):
    total = 0
    for i in range(1, n, 3):
        total += i
    return total


@program(ints(0, 9))
def for_range_bounds_once(n):
    total = 0
    for i in range(n):
        n = n - 1
        total += n * 10 + i
    return total, n


@program(ints(0, 9))
def loop_variable_reassigned(n):
    total = 0
    for i in range(n):
        i = i * 2
        total += i
    return total


@program(ints(0, 6))
def loop_variable_after_loop(n):
    i = -1
    for i in range(n):
        pass
    return i


@program(ints(0, 20))
def for_continue(n):
    total = 0
    for i in range(n):
        if i % 3 == 0:
            continue
        total += i
    return total


@program(ints(2, 60))
def is_prime(n):
    for d in range(2, n):
        if d * d > n:
            break
        if n % d == 0:
            return False
    return True


@program(ints(2, 24))
def count_primes(n):
    count = 0
    for k in range(2, n):
        for d in range(2, k):
            if k % d == 0:
                break
        else:
            count += 1
    return count


@program(floats(-1, 1, 5, 2))
def for_rows(xs):
    total = jnp.zeros(2)
    for row in xs:
        if row[0] > 0:
            total = total + row
        else:
            total = total * 0.5
    return total


@program(floats(-1, 1, 6))
def for_enumerate(xs):
    best, where = -2.0, -1
    for i, x in enumerate(xs):
        if x > best:
            best, where = x, i
    return best, where


@program(ints(0, 9, 4, 2))
def for_enumerate_start_unpack(pairs):
    total = 0
    for i, (a, b) in enumerate(pairs, 1):
        if a > b:
            total += i * a
        elif a == b:
            break
    return total


@program(ints(-3, 6, 5))
def for_break_keeps_value(xs):
    found = 99
    for x in xs:
        if x < 0:
            found = x
            break
    else:
        found = 0
    return found


@program(ints(1, 30))
def collatz(n):
    steps = 0
    while n != 1:
        n = n // 2 if n % 2 == 0 else 3 * n + 1
        steps += 1
    return steps


@program(floats(0.5, 90))
def newton_sqrt(x):
    guess = x
    while jnp.abs(guess * guess - x) > 1e-4 * x:
        guess = 0.5 * (guess + x / guess)
    return guess


@program(ints(1, 60), ints(1, 60))
def gcd_while(a, b):
    while b:
        a, b = b, a % b
    return a


@program(ints(0, 20, 5))
def bubble_sort(xs):
    n = xs.shape[0]
    for i in range(n):
        for j in range(n - 1 - i):
            if xs[j] > xs[j + 1]:
                a, b = xs[j], xs[j + 1]
                xs = xs.at[j].set(b)
                xs = xs.at[j + 1].set(a)
    return xs


@program(ints(0, 30))
def binary_search(target):
    table = jnp.arange(10) * 3
    low, high = 0, 9
    while low <= high:
        middle = (low + high) // 2
        if table[middle] == target:
            return middle
        if table[middle] < target:
            low = middle + 1
        else:
            high = middle - 1
    return -1


@program(ints(-4, 4), ints(0, 3))
def short_circuit(x, y):
    safe = y != 0 and x // y > 0
    either = y == 0 or x % y == 0
    neither = not (safe or either)
    return safe, either, neither


@program(ints(-3, 3), ints(-3, 3))
def short_circuit_values(x, y):
    a = x or y
    b = x and y
    return a, b, (x or 7) + (y and 5)


@program(ints(0, 9), ints(0, 9))
def short_circuit_loop(a, b):
    while a > 0 and (b > 2 or not a % 3 == 0):
        a -= 1
        b = b + 3 if b <= 2 else b - 2
    return a, b


@program(ints(0, 9), ints(0, 9), ints(0, 9))
def chained_comparisons(a, b, c):
    if a < b < c:
        return 1
    if a <= b == c:
        return 2
    while 0 < a <= c != b:
        a = a - 1
    return a + (0 < b < 5) * 10


@program(ints(-9, 9))
def ternaries(x):
    sign = -1 if x < 0 else 0 if x == 0 else 1
    return (x if sign > 0 else -x) * 10 + sign


@program(ints(1, 9), floats(1, 3))
def augmented(n, y):
    n += 3
    n -= 1
    n *= 5
    n //= 2
    n %= 7
    n <<= 2
    n |= 3
    n ^= 9
    n &= 13
    n >>= 1
    y **= 2
    y /= 3
    return n, y


@program(ints(0, 20))
def elif_chain(n):
    if n % 15 == 0:
        word = 4
    elif n % 5 == 0:
        word = 3
    elif n % 3 == 0:
        word = 2
    else:
        word = 1
    return word


@program(ints(0, 9), ints(0, 30))
def return_from_nested_loops(n, goal):
    for i in range(n):
        for j in range(n):
            if i * j == goal:
                return i, j
    return -1, -1


@program(ints(1, 40))
def while_true(n):
    bits = 0
    while True:
        if n == 0:
            break
        if n % 2:
            bits += 1
        n //= 2
    return bits


@program(ints(0, 12))
def swap_in_loop(n):
    a, b = 0, 1
    for _ in range(n):
        a, b = b, a + b
    return a


@program(ints(0, 6), ints(0, 6))
def loops_in_sequence(n, m):
    total = 0
    for i in range(n):
        total += i
    for i in range(m):
        total -= 2 * i
    while total < 0:
        total += 5
    return total


@program(bools(), bools())
def boolean_conditions(a, b):
    if a:
        if not b:
            return 1
        return 2
    return 3 if b else 4


@program(ints(0, 5))
def code_after_return(n):
    if n > 2:
        return n
        n = n + 100
    return -n


@program(ints(1, 20), ints(1, 5))
def different_trip_counts(n, m):
    total = 0
    while n > 0:
        k = m
        while k > 0:
            total += k
            k -= 1
            if total > 60:
                return total
        n -= 1
    return total


@program(ints(1, 30))
def continue_in_while(n):
    total = 0
    while n > 0:
        n -= 1
        if n % 2 == 0:
            continue
        if n == 13:
            break
        total += n
    return total


@program(floats(-2, 1), floats(-1, 1))
def mandelbrot(re, im):
    z_re, z_im, count = 0.0 * re, 0.0 * im, 0
    while count < 30 and z_re * z_re + z_im * z_im <= 4.0:
        z_re, z_im = z_re * z_re - z_im * z_im + re, 2.0 * z_re * z_im + im
        count += 1
    return count
