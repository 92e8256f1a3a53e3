"""Programs of which some lanes fail: `assert` and `raise` wherever Python allows them."""

from __future__ import annotations

import jax.numpy as jnp

import pcbatch
from tests.programs.registry import cycle, floats, ints, program, shared

LIMIT = 40


class TooFar(Exception):
    """An exception of the user's own."""


@program(ints(-3, 9), raises=(AssertionError,))
def assert_at_entry(n):
    assert n >= 0, f"n must not be negative, but is {n}"
    total = 0
    while n > 0:
        total += n
        n -= 1
    return total


@program(ints(0, 30), floats(0.5, 4), raises=(ValueError, TooFar))
def raise_in_a_loop(n, x):
    k = 0
    while k < n:
        x = x * 1.5
        k += 1
        if x > 500.0:
            raise TooFar(f"left after {k} of {n} steps")
        if k == 17:
            raise ValueError("seventeen")
    return x, k


@program(ints(-4, 4), raises=(KeyError, IndexError, AssertionError))
def several_kinds(n):
    if n == -4:
        raise IndexError
    if n < 0:
        assert n > -3, "text"
        n = -n
    elif n == 3:
        raise AssertionError("raised {} times {:d}".format(n, n * 2))  # noqa: UP032
    return n * 2


@program(cycle(1, 2, 3, 4), raises=(NotImplementedError,))
def raise_at_the_end(n):
    if n % 2 == 0:
        return n
    elif n > 2:
        return -n
    raise NotImplementedError


@program(ints(0, 9), floats(-1, 1, 3))
def never_raises(n, x):
    if x.ndim != 1:
        raise TypeError(f"a vector is needed, not {x.ndim} axes")
    mode = "fast"
    if mode == "slow":
        raise NotImplementedError
    assert LIMIT > 9, LIMIT
    assert n < LIMIT and jnp.all(jnp.abs(x) <= 1), "out of range"
    return x * n


@program(cycle(0, 1, 5, 11, 9, 12), recursive=True, raises=(ValueError,))
@pcbatch.batch
def raise_in_recursion(n):
    if n > 10:
        raise ValueError(f"too deep: {n}")
    if n <= 1:
        return n
    below = raise_in_recursion(n - 2)
    if below % 7 == 3:
        raise ValueError(f"{n} above {below}")
    return raise_in_recursion(n - 1) + below


@pcbatch.batch
def refuse(n, why):
    """Never returns."""
    raise ValueError(f"{n} is refused: {why:.1f}")


@program(ints(-5, 5), raises=(ValueError,))
def callee_that_never_returns(n):
    x = n * 0.5
    if n < 0:
        y = refuse(n, x)
    elif n == 3:
        y = refuse(n, x + 1)
        x = y + x
    else:
        y = x
    return x + y


@program(ints(-5, 5), raises=(ValueError,))
def widens_after_a_call_that_never_returns(n):
    step, total = 1, 0.0
    while n != 0:
        if n < 0:
            why = refuse(n, n)
            total = step.of_no_interest
        n -= 1
        step = step * 0.5
        total = total + step
    return total


@pcbatch.batch
def checked_root(x):
    assert x >= 0
    guess = x + 1.0
    for _ in range(6):
        guess = 0.5 * (guess + x / guess)
    return guess


@program(floats(-1, 4), floats(-1, 4), raises=(AssertionError,))
def callee_that_may_fail(a, b):
    if a > b:
        return checked_root(a) - checked_root(b)
    total = checked_root(b)
    while total > 0.5:
        total = total - checked_root(a) * 0.1 - 0.1
    return total


@program(ints(0, 9, 4), ints(0, 5), shared(jnp.asarray([2, 3])), in_axes=(0, 0, None), raises=(ValueError,))
def message_of_many_kinds(xs, n, table):
    pair = (n, {"k": xs[0]})
    width = 6
    if xs[n % 4] > 6:
        raise ValueError(f"{pair[0]:>{width}d}|{pair[1]['k'] * 0.25:.3f}|{n=!s:>3}|{table[0]}|{LIMIT}|{{}}|{xs[1:]}")
    return xs + n


@program(ints(-2, 6), raises=(AssertionError,))
def assert_false_ends(n):
    if n > 0:
        return n
    if n == 0:
        return 100
    assert False, "unreachable, or so it seemed"


@program(ints(-6, 6), ints(-6, 9), cycle(2, -3, 1, 0, -1, 5, 0), raises=(ValueError,))
def range_with_a_step_of_the_lane(start, stop, step):
    total = 0
    for k in range(start, stop, step):
        total = total * 3 + k
        step = 1
    return total


@program(ints(-6, 9), cycle(2, 1, 0, 4, -3))
def guarded_steps(stop, step):
    if step == 0:
        return -1
    total = 0
    for k, x in zip(reversed(range(0, stop, step)), range(stop, 0, -2)):
        total = total * 2 + k - x
    return total
