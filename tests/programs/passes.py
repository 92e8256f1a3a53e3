"""Programs that a broken pass would get wrong: each tells one defect apart (see docs/developers/testing.md)."""

from __future__ import annotations

import jax.numpy as jnp
import numpy as np

import pcbatch
from tests.programs.registry import bools, cycle, floats, ints, program, shared


@program(ints(0, 6), recursive=True)
def changed_between_calls(n):
    """What the first call saves is not what the second one must save, on any path."""
    if n <= 0:
        return 1
    v = n
    x = changed_between_calls(n - 1)
    while x > 0:
        v = v + 3
        x = x - 20
    y = changed_between_calls(n - 2)
    return v + y + x


@program(bools(), ints(0, 6))
def condition_changes_in_its_own_arm(flag, n):
    k = 0
    while n > 0:
        if flag:
            flag = n > 3
            k = k + n
        else:
            flag = n < 2
            k = k * 2
        n = n - 1
    return flag, k


@program(ints(-4, 6))
def second_test_assigns(x):
    """As `if x > 0 and x * 2 > 5`, but the second test leaves something behind."""
    y = 1
    if x > 0:
        y = x * 2
        if y > 5:
            return y
    return y + 100


@program(bools(), ints(0, 6), ints(0, 6))
def same_condition_again(flag, x, y):
    """The first arms have nothing to do when the second test comes."""
    while x > 0:
        if flag:
            x = x - 1
        if flag:
            y = y + x
        else:
            x = x - 2
    return x, y


@program(ints(0, 9), shared(np.float32(2)), shared(np.float32(3)), in_axes=(0, None, None))
def shared_by_two_ways(n, u, w):
    """x is one of two shared values, y the same one on every way."""
    x = u
    y = u
    if n > 3:
        while n > 3:
            n -= 2
        x = w
        y = u
    return x * n + y


@program(ints(1, 9))
def loop_of_one_block(n):
    k = 0
    while True:
        k = k + n
        n = n - 1
        if n <= 0:
            return k


@pcbatch.batch
def count_up(n):
    while n < 3:
        n += 1
    return n


@pcbatch.batch
def seven(n):
    return 7


@pcbatch.batch
def in_between(n):
    """Writes no variable of the function that it calls."""
    return changed_further_down(n) + 1


@program(ints(0, 6), recursive=True)
def changed_further_down(n):
    """A variable that only the callee of the callee writes."""
    v = n * 3
    if n > 0:
        r = in_between(n - 1)
        return v + r
    return v


@program(ints(0, 6))
def call_result_is_widened(n):
    x = count_up(n)
    y = seven(n)
    if n > 2:
        x = x * 0.25
        y = 0.5 * n
    return x, y


@program(cycle(4, 1, 3, 0))
def primitive_is_widened(n):
    """The next primitive of the block reads the wider value."""
    y = n * 2
    z = y + 1
    while z > 3:
        y = y * 0.25
        z = z - 3
    return y


@program(ints(0, 6))
def move_is_widened(n):
    y = n
    if n > 2:
        y = 0.5
    return y


@program(ints(0, 6), ints(0, 200, dtype=np.uint8))
def weak_against_small(n, x):
    """A Python integer that changes stays weak, so the result is as narrow as `x`."""
    k = 1
    while n > 0:
        k = k + 1
        n -= 1
    return x * k


@program(ints(0, 6))
def equal_constants_of_other_types(n):
    """1 == True == 1.0, and yet they are three."""
    a, b = 1, True
    if n > 2:
        a, b = 1.0, 1
    return a, b, a / 2


@program(ints(0, 6), floats(-1, 1))
def keys_that_look_alike(n, x):
    """Both keys give the same identifier."""
    d = {"a b": x, "_a_b": n}
    while n > 0:
        d = {"a b": d["a b"] * 2, "_a_b": d["_a_b"] + 1}
        n -= 1
    return d


@program(ints(0, 9), ints(50, 150))
def known_only_at_first(n, m):
    """While `k` counts as the constant 0, the division fails; no lane gets there before `k` has changed."""
    k, total, started = 0, 0, m > 200
    while n > 0:
        if started:
            total += 10 // k
        started = True
        k = n + 1
        n -= 1
    return total


@program(floats(-1, 1, 3))
def bound_where_known(x):
    if x.ndim == 1:
        y = jnp.sum(x)
    if x.shape[0] > 5:
        y = z + 1  # noqa: F821
    return y


@program(ints(0, 6), ints(0, 6))
def results_of_one_primitive_swap(a, b):
    """One primitive gives both, and reads what it gives."""
    n = a
    while n > 0:
        a, b, _ = b + 1, a, a * 2
        n -= 1
    return a, b
