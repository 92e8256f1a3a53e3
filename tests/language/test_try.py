"""`try` in lanes: handlers by class, `else`, `finally`, calls that raise, and what is not caught."""

from __future__ import annotations

import contextlib
import functools
import math
from collections.abc import Callable, Sequence
from typing import Any

import jax
import jax.numpy as jnp
import pytest

import pcbatch


def quotient(a, b):
    try:
        return a // b
    except ZeroDivisionError:
        return -1


def half(n):
    if n % 2:
        raise ValueError("odd")
    return n // 2


def clauses(n):
    try:
        x = half(n)
    except ValueError:
        x = -n
    else:
        x += 100
    finally:
        n = n + 1
    return x + n


def until_the_end(i):
    xs = [1, 2, 3]
    total = 0
    while True:
        try:
            total += xs[i]
            i += 1
        except IndexError:
            break
    return total


def nested(n):
    try:
        try:
            if n == 0:
                raise KeyError(n)
            if n == 1:
                raise ValueError("x")
            assert n < 5
            return 10 // (n - 2)
        except KeyError:
            return 100
        finally:
            n += 1
    except (ValueError, AssertionError):
        return 200
    except ZeroDivisionError:
        raise
    return n


def suppressed(n):
    r = 0
    with contextlib.suppress(ZeroDivisionError):
        r = 7 // n
    return r


class Deep(Exception):
    """An exception of a user."""


def descend(n):
    if n == 0:
        raise Deep("no ground")
    if n == 7:
        return 0
    return descend(n - 1) + 1


def catches_what_a_call_raises(n):
    try:
        return descend(n)
    except Deep:
        return 50


def keeps_what_was_stored(n):
    xs = [0, 0, 0]
    try:
        for i in range(n):
            xs[i] = 1
    except IndexError:
        xs[0] = 9
    return xs[0] + xs[1] + xs[2]


def leaves_a_loop(n):
    count = 0
    for k in range(n):
        try:
            if k == 3:
                break
            if k % 2:
                continue
            count += 1
        finally:
            count += 10
    return count


CASES: list[tuple[Callable[..., Any], Sequence[tuple[int, ...]]]] = [
    (quotient, [(6, 3), (7, 0), (-8, 3)]),
    (clauses, [(6,), (7,), (8,)]),
    (until_the_end, [(0,), (1,), (5,)]),
    (nested, [(0,), (1,), (3,), (4,), (7,)]),
    (suppressed, [(0,), (2,)]),
    (catches_what_a_call_raises, [(0,), (9,), (3,)]),
    (keeps_what_was_stored, [(2,), (3,), (5,)]),
    (leaves_a_loop, [(0,), (2,), (6,)]),
]


@pytest.mark.parametrize(("fn", "examples"), CASES, ids=[fn.__name__ for fn, _ in CASES])
def test_a_lane_does_what_python_does(fn: Callable[..., Any], examples: Sequence[tuple[int, ...]]) -> None:
    columns = [jnp.array(column) for column in zip(*examples, strict=True)]
    assert pcbatch.batch(fn)(*columns).tolist() == [fn(*example) for example in examples]


def test_what_no_handler_catches_ends_the_lane() -> None:
    with pytest.raises(pcbatch.BatchRuntimeError, match="1 of 2 lanes raised `ZeroDivisionError`"):
        pcbatch.batch(nested)(jnp.array([2, 3]))


class TooLarge(Exception):
    """An exception of the user's own."""


def too_large(n):
    if n > 7:
        raise TooLarge
    assert n < 5, "large"
    return n


def called_where_others_are_caught(n):
    try:
        return too_large(n)
    except ValueError:
        return -1


@pytest.mark.parametrize(("n", "name"), [(6, "assertion"), (9, "`TooLarge`")])
def test_what_a_function_raises_keeps_its_name_when_no_handler_catches_it(n: int, name: str) -> None:
    assert pcbatch.batch(called_where_others_are_caught)(jnp.array([3])).tolist() == [3]
    with pytest.raises(pcbatch.BatchRuntimeError, match=name):
        pcbatch.batch(called_where_others_are_caught)(jnp.array([3, n]))


def test_outside_of_a_try_nothing_is_checked() -> None:
    @pcbatch.batch(numbers="jax")
    def plain(a, b):
        return a // b

    assert "check" not in plain.lower(jnp.array([1]), jnp.array([2])).as_text("opt")


def test_the_exception_itself_is_no_value() -> None:
    @pcbatch.batch
    def shows(n):
        try:
            return 7 // n
        except ZeroDivisionError as error:
            return len([error])

    with pytest.raises(pcbatch.CompileError, match="PCB101"):
        shows(jnp.array([0]))


@pcbatch.batch
def collatz(n):
    steps = 0
    while n != 1:
        n = n // 2 if n % 2 == 0 else 3 * n + 1
        steps += 1
    return steps


def test_vmap_of_a_batched_function_in_a_lane() -> None:
    @pcbatch.batch
    def longest(ns, least):
        return jnp.maximum(jnp.max(jax.vmap(collatz)(ns)), least)

    ns = jnp.array([[1, 6, 27], [2, 3, 4]])
    assert longest(ns, jnp.array([5, 9])).tolist() == [111, 9]


def test_vmap_with_axes_in_a_lane() -> None:
    @pcbatch.batch
    def power(x, n):
        r = 1
        while n > 0:
            r, n = r * x, n - 1
        return r

    @pcbatch.batch
    def powers(xs, n):
        return jax.vmap(power, in_axes=(1, None))(xs, n)[:, 0] if xs.ndim > 2 else jax.vmap(power, (0, None))(xs, n)

    assert powers(jnp.array([[2, 3], [4, 5]]), jnp.array([3, 2])).tolist() == [[8, 27], [16, 25]]


def guarded(k):
    try:
        return 10 // k
    except ZeroDivisionError:
        return -7


def looked_up(table, k):
    try:
        return table[k]
    except KeyError:
        return -7


def suppressed_in_a_helper(k):
    with contextlib.suppress(ValueError):
        return math.factorial(k - 2)
    return -7


def branches_under_every_handler(k):
    try:
        if k > 3:
            return 1
        return 2
    except Exception:
        return -1


@functools.cache
def cached(k):
    return guarded(k) + looked_up({3: k}, k)


class Guarded:
    def __init__(self, n):
        self.n = n

    def quotient(self):
        try:
            return 10 // self.n
        except ZeroDivisionError:
            return -7

    def __add__(self, other):
        try:
            return other // self.n
        except ZeroDivisionError:
            return -7


def each_guarded(xs):
    for x in xs:
        try:
            yield 10 // x
        except ZeroDivisionError:
            yield -7


def passing(n):
    for k in range(n):
        try:
            yield k
        except ValueError:
            yield -1


def helpers_that_catch(n):
    def inside(k):
        try:
            return 10 // k
        except ZeroDivisionError:
            return -7

    first = guarded(n) + 100 * sum(guarded(k) for k in (n, 0)) + 1000 * looked_up({1: 2}, n)
    second = inside(n) + 100 * suppressed_in_a_helper(n) + 1000 * branches_under_every_handler(n) + cached(n)
    return first, second, sum(map(inside, (n, 3))), max((2, n, 0), key=guarded)


def objects_and_generators_that_catch(n):
    box = Guarded(n)
    return box.quotient() + 100 * (box + 30), sum(each_guarded([n, 0, n - 3])), max(each_guarded((n,)))


def raises_in_the_loop(n):
    total = 0
    try:
        for x in passing(n):
            if x == 2:
                raise ValueError
            total += x + 1
    except ValueError:
        total = -total - 1
    return total, total + n


@pytest.mark.parametrize("fn", [helpers_that_catch, objects_and_generators_that_catch, raises_in_the_loop])
def test_what_a_helper_catches_each_lane_raises_by_itself(fn: Callable[..., Any]) -> None:
    ns = range(6)
    found = pcbatch.batch(fn)(jnp.array(ns))
    assert list(zip(*(part.tolist() for part in found), strict=True)) == [fn(n) for n in ns]


def taken(n):
    it = iter(range(n))
    yield next(it) + next(it)
    yield next(it)


def first_of(it):
    return next(it)


def taken_by_a_helper(n):
    it = iter(range(n))
    yield first_of(it)


def stops(n):
    if n > 3:
        raise StopIteration
    yield n


@pytest.mark.parametrize("generator", [taken, taken_by_a_helper, stops])
def test_a_generator_that_runs_out_inside_raises_a_runtime_error(generator: Callable[..., Any]) -> None:
    def total(n):
        try:
            return sum(generator(n))
        except RuntimeError:
            return -1
        except StopIteration:
            return -2

    assert pcbatch.batch(total)(jnp.arange(6)).tolist() == [total(n) for n in range(6)]


def test_a_finally_around_a_yield_is_refused() -> None:
    def ends(n, log):
        try:
            yield n
        finally:
            log.append(n)

    def first(n):
        log = [0]
        for x in ends(n, log):
            if x > 1:
                break
        return log[-1]

    with pytest.raises(pcbatch.CompileError, match="PCB105"):
        pcbatch.batch(first)(jnp.arange(3))


def number_of(n):
    s = "12a"[n % 3 :]
    try:
        int(s)
    except ValueError:
        return False
    return True


def long_enough(n):
    xs = list(range(n))
    try:
        xs[2]
        {3: 2, 4: 1, 5: 0}[n]
    except IndexError:
        return -1
    except KeyError:
        return -2
    return 1


def divides(n):
    with contextlib.suppress(ZeroDivisionError):
        for k in range(3):
            if k == n:
                1 // (k - n)
        return 1
    return -1


def listed(n):
    found = [0]
    try:
        [1, 2].index(n)
        found.append(n)
    except ValueError:
        found.append(-n)
    return found[1]


@pytest.mark.parametrize("function", [number_of, long_enough, divides, listed])
def test_an_expression_that_stands_alone_raises(function: Callable[..., Any]) -> None:
    assert pcbatch.batch(function)(jnp.arange(6)).tolist() == [function(n) for n in range(6)]
