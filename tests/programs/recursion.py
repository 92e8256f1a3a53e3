"""Recursion and calls between batched functions, in every position that a call can stand in."""

from __future__ import annotations

import jax.numpy as jnp
import numpy as np

import pcbatch
from tests.programs.registry import floats, ints, program, shared


@program(ints(0, 2), ints(0, 2), recursive=True)
def ackermann(m, n):
    if m == 0:
        return n + 1
    if n == 0:
        return ackermann(m - 1, 1)
    return ackermann(m - 1, ackermann(m, n - 1))


@program(ints(85, 104), recursive=True)
def mccarthy(n):
    if n > 100:
        return n - 10
    return mccarthy(mccarthy(n + 11))


@program(ints(0, 4), ints(0, 4), ints(0, 4), recursive=True)
def tak(x, y, z):
    if y >= x:
        return z
    return tak(tak(x - 1, y, z), tak(y - 1, z, x), tak(z - 1, x, y))


@program(ints(0, 5), recursive=True)
def hanoi(n):
    if n == 0:
        return 0
    return hanoi(n - 1) + 1 + hanoi(n - 1)


@program(ints(1, 5), recursive=True)
def queens(n):
    return place((1 << n) - 1, 0, 0, 0)


@pcbatch.batch
def place(full, columns, left, right):
    if columns == full:
        return 1
    count = 0
    free = full & ~(columns | left | right)
    while free != 0:
        bit = free & -free
        free = free ^ bit
        count += place(full, columns | bit, (left | bit) << 1, (right | bit) >> 1)
    return count


@program(ints(0, 5), recursive=True)
def catalan(n):
    if n <= 1:
        return 1
    total = 0
    for i in range(n):
        total += catalan(i) * catalan(n - 1 - i)
    return total


@program(ints(0, 6), ints(0, 6), recursive=True)
def binomial(n, k):
    if k < 0 or k > n:
        return 0
    if k == 0 or k == n:
        return 1
    return binomial(n - 1, k - 1) + binomial(n - 1, k)


@program(ints(0, 8), recursive=True)
@pcbatch.batch
def hofstadter_female(n):
    if n == 0:
        return 1
    return n - hofstadter_male(hofstadter_female(n - 1))


@pcbatch.batch
def hofstadter_male(n):
    if n == 0:
        return 0
    return n - hofstadter_female(hofstadter_male(n - 1))


@program(ints(0, 12), recursive=True)
@pcbatch.batch
def three_cycle(n):
    if n <= 0:
        return 0
    return cycle_second(n - 1) + 1


@pcbatch.batch
def cycle_second(n):
    if n <= 0:
        return 10
    return cycle_third(n - 1) * 2


@pcbatch.batch
def cycle_third(n):
    if n <= 0:
        return 100
    return three_cycle(n - 1) - 3


@program(ints(0, 40), ints(1, 40), recursive=True)
def extended_gcd(a, b):
    if b == 0:
        return a, 1, 0
    g, x, y = extended_gcd(b, a % b)
    return g, y, x - (a // b) * y


@program(floats(0.5, 1.5), ints(0, 13), recursive=True)
def power(x, n):
    if n == 0:
        return 1.0
    half = power(x, n // 2)
    if n % 2 == 0:
        return half * half
    return half * half * x


LEFT = np.array([1, 3, -1, -1, 6, -1, -1], np.int32)
RIGHT = np.array([2, 4, 5, -1, -1, -1, -1], np.int32)
VALUE = np.array([5.0, 3.0, 8.0, 1.0, 4.0, 7.0, 2.0], np.float32)


@program(ints(-1, 6), shared(LEFT), shared(RIGHT), shared(VALUE), in_axes=(0, None, None, None), recursive=True)
def tree_sum(node, left, right, value):
    if node < 0:
        return 0.0
    return value[node] + tree_sum(left[node], left, right, value) + tree_sum(right[node], left, right, value)


@program(ints(-1, 6), recursive=True)
def tree_depth(node):
    if node < 0:
        return 0
    left, right = jnp.asarray(LEFT)[node], jnp.asarray(RIGHT)[node]
    return 1 + jnp.maximum(tree_depth(left), tree_depth(right))


@program(ints(0, 6), ints(0, 3), recursive=True)
def keyword_recursion(n, acc):
    if n == 0:
        return acc
    return keyword_recursion(acc=acc + n, n=n - 1) + keyword_recursion(n - 1, acc=0)


@pcbatch.batch
def with_defaults(n, step=2, *, bonus=1):
    if n <= 0:
        return bonus
    return with_defaults(n - step, bonus=bonus + 1) + step


@program(ints(0, 9), recursive=True)
def defaults_and_keyword_only(n):
    return with_defaults(n) + 10 * with_defaults(n, 3) + 100 * with_defaults(n, step=1, bonus=n)


@pcbatch.batch
def triangle(n):
    if n <= 0:
        return 0
    return n + triangle(n - 1)


@program(ints(0, 6), ints(0, 12), recursive=True)
def calls_in_conditions(n, limit):
    if triangle(n) > limit:
        return -1
    while triangle(n) < limit:
        n += 1
    return n


@program(ints(0, 6), ints(0, 12), recursive=True)
def calls_under_short_circuit(n, limit):
    a = n > 3 and triangle(n) > limit
    b = triangle(n) if n % 2 == 0 else triangle(limit)
    c = n == 0 or triangle(n - 1) < triangle(limit) < 30
    return a, b, c


@program(ints(0, 6), recursive=True)
def calls_in_arguments(n):
    return triangle(triangle(triangle(n) % 4) % 5) + jnp.maximum(triangle(n), 3)


@program(ints(0, 6), recursive=True)
def ignored_call_results(n):
    triangle(n)
    _ = triangle(n + 1)
    _, y = extended_pair(n)
    return y


@pcbatch.batch
def extended_pair(n):
    if n <= 0:
        return 0, 1
    a, b = extended_pair(n - 1)
    return b, a + b


@program(ints(0, 5), floats(-1, 1, 3), recursive=True)
def array_through_recursion(n, x):
    if n == 0:
        return x
    y = array_through_recursion(n - 1, x * 0.5)
    z = array_through_recursion(n - 1, y + 1.0)
    return y - z


@program(ints(0, 4), ints(0, 9, 6), recursive=True)
def write_through_recursion(n, out):
    if n == 0:
        return out.at[0].add(1)
    out = write_through_recursion(n - 1, out)
    out = out.at[n].set(out[n - 1] * 2)
    return write_through_recursion(n - 2 if n > 1 else 0, out)


@program(floats(0, 1), floats(1.5, 3), recursive=True, rtol=1e-4)
def adaptive_quadrature(a, b):
    middle = 0.5 * (a + b)
    coarse = (b - a) * jnp.sin(middle)
    fine = 0.5 * (b - a) * (jnp.sin(0.5 * (a + middle)) + jnp.sin(0.5 * (middle + b)))
    if jnp.abs(fine - coarse) < 1e-3:
        return fine
    return adaptive_quadrature(a, middle) + adaptive_quadrature(middle, b)


@program(ints(0, 6, 5), ints(0, 15), recursive=True)
@pcbatch.batch
def subset_sums(items, goal):
    return count_subsets(items, 0, goal)


@pcbatch.batch
def count_subsets(items, start, goal):
    if start == items.shape[0]:
        return 1 if goal == 0 else 0
    return count_subsets(items, start + 1, goal) + count_subsets(items, start + 1, goal - items[start])


@program(ints(1, 12), recursive=True)
def collatz_recursive(n):
    if n == 1:
        return 0
    if n % 2 == 0:
        return 1 + collatz_recursive(n // 2)
    return 1 + collatz_recursive(3 * n + 1)


@program(ints(0, 14), recursive=True)
@pcbatch.batch
def mutual_tail_calls(n):
    if n <= 0:
        return n
    return tail_other(n, 3)


@pcbatch.batch
def tail_other(n, k):
    if k == 0:
        return mutual_tail_calls(n - 4)
    return tail_other(n + 1 if n % 2 else n - 1, k - 1)


@program(ints(0, 6), recursive=True)
def local_survives_call(n):
    a = n * 2
    b = a + 1
    if n <= 0:
        return b
    c = local_survives_call(n - 1)
    a = a + c
    d = local_survives_call(n - 2)
    return a * 3 + b - d + n


@program(ints(0, 4), ints(0, 4), recursive=True)
def swapped_parameters(a, b):
    if a <= 0 or b <= 0:
        return a - b
    return swapped_parameters(b - 1, a) * 2 + swapped_parameters(b, a - 1) + a


@program(ints(0, 5), recursive=True)
def recursion_in_while_body(n):
    total, i = 1, 0
    while i < n:
        total += recursion_in_while_body(i)
        if total > 20:
            break
        i += 1
    return total


@pcbatch.batch
def clamp(x, low, high):
    if x < low:
        return low
    if x > high:
        return high
    return x


@program(floats(-2, 2), ints(0, 5))
def callee_without_recursion(x, n):
    for _ in range(n):
        x = clamp(x * 1.5 - 0.2, -1.0, clamp(x, 0.5, 0.9))
    return x


@pcbatch.batch
def never_called(n):
    return n > 3


@program(ints(0, 5))
def call_that_is_optimised_away(n):
    zero = 0
    return zero >= 0 or (n > 0 and never_called(n - 1))
