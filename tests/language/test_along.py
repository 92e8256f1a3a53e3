"""Only the entry is decorated: helpers of the user's own code are compiled along where tracing cannot do."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import jax.numpy as jnp
import numpy as np
import pytest

import pcbatch
from pcbatch import BatchRuntimeError, CompileError
from tests.language import along_helpers
from tests.language.along_helpers import (
    Walker,
    absolute,
    applied,
    bisect,
    chained,
    check,
    clamp,
    clamp3,
    collatz,
    divisors,
    even,
    fib,
    gcd,
    is_prime,
    paths,
)

pytestmark = pytest.mark.promotion("standard")
Case = tuple[Callable[..., Any], tuple[Any, ...]]
CASES: list[Case] = []
walker = Walker(9)


def case(*args: Any) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Have a function compared with itself in plain Python."""

    def note(fn: Callable[..., Any]) -> Callable[..., Any]:
        CASES.append((fn, args))
        return fn

    return note


def assert_as_plain(fn: Callable[..., Any], args: tuple[Any, ...]) -> None:
    """Every lane equals the plain function."""
    batched = pcbatch.batch(fn)
    found = np.asarray(batched(*map(jnp.asarray, args)))
    want = [fn(*(arg[k] for arg in args)) for k in range(len(args[0]))]
    np.testing.assert_allclose(found, np.asarray(want), rtol=1e-5)


@pytest.mark.parametrize(("fn", "args"), CASES, ids=lambda value: getattr(value, "__name__", ""))
def test_as_plain(fn: Callable[..., Any], args: tuple[Any, ...]) -> None:
    assert_as_plain(fn, args)


@case([1, 5, 12])
def loops_in_a_helper(n):
    return sum(1 for k in range(1, n + 1) if gcd(k, n) == 1) + along_helpers.gcd(n, 15)


@case([0, 10, 30])
def early_returns(n):
    count = 0
    for k in range(n):
        if is_prime(k):
            count += 1
    return count


@case([0, 5, 8])
def recursion(n):
    return 2 * fib(n) + (1 if even(n) else 0)


@case([0, 5, 9])
def best_by_key(n):
    return max(range(n + 1), key=lambda k: collatz(k + 1))


@case([-1, 4, 60])
def defaults_and_keywords(n):
    return clamp(n) + 10 * clamp(n, 2, high=3) + 100 * clamp(x=n, high=4) + clamp3(n)


@case([1, 2, 3], [2, 2, 4])
def cached(i, j):
    return paths(i, j)


@case([1, -4])
def handed_on(x):
    return absolute(x, scale=3) + absolute(x)


@case([1, 2, 5])
def nested_functions_that_change_a_list(n):
    calls = []

    def odd(x):
        calls.append(x)
        return x % 2

    add = lambda x: calls.append(10 * x)
    known = odd(n) and odd(n + 1) or odd(n + 2)
    add(n)
    return known + 10 * any(odd(x) for x in range(n)) + 100 * len(calls) + 1000 * sum(calls)


@case([2.0, 9.0])
def a_lambda_that_captures(x):
    return bisect(lambda t: t * t - x, 0.0, 10.0)


@case([0, 5, 11])
def methods(n):
    return walker.twice(n) + Walker.first(n) + walker.first(n) + walker.last(n) + walker(n)


@case(np.array([[1, 2, 3, 4], [2, 2, 2, 2]]), [5, 4])
def nested_recursion(xs, target):
    n = len(xs)

    def sums(i, total):
        if i == n:
            return 1 if total == target else 0
        return sums(i + 1, total) + sums(i + 1, total + xs[i])

    return sums(0, 0)


@case([1, 4, 9])
def nested_reads_late(n):
    k = 1

    def moved(v):
        if v > 3:
            return v + k
        return v - k

    first = moved(n)
    k = 5
    return first * 100 + moved(n)


@case([1, 4, 6])
def nonlocal_counts(n):
    calls = 10

    def bump(k):
        nonlocal calls
        if k > 2:
            calls += k
        return calls

    return calls * 1000 + bump(n) + calls


@case([1, 4, 7])
def nonlocal_of_two_functions(n):
    c = 0

    def a(k):
        nonlocal c
        if k > 2:
            c += 1
        return c

    def b(k):
        nonlocal c
        c = c * 10
        r = a(k)
        return r + c

    x = b(n) + a(n) * b(n)
    return x + c


@case([1, 4, 6])
def nonlocal_through_an_argument(n):
    hits = 0

    def count(v):
        nonlocal hits
        hits += 1
        if v % 2:
            return v + n
        return v

    return applied(count, n) * 100 + hits


def each_below(function, n):
    if n <= 0:
        return function(0)
    return each_below(function, n - 1) + function(n)


@case([0, 1, 5])
def nested_functions_through_a_recursive_helper(n):
    seen = []
    calls = 0

    def collect(v):
        seen.append(v)
        return len(seen)

    def count(v):
        nonlocal calls
        calls += v
        return calls

    first, second = each_below(collect, n), each_below(count, n)
    return first + 100 * second + 10_000 * (sum(seen) + calls) + each_below(lambda v: v * n, n)


def total_of(function, xs):
    total = 0
    for x in xs:
        if x > 1:
            total += function(x)
    return total


@case([0, 1, 5])
def a_nested_function_that_changes_a_list_is_handed_on(n):
    seen = []

    def collect(v):
        seen.append(v)
        return len(seen)

    first = total_of(collect, [n, 2, n + 1])
    return first + 100 * total_of(lambda v: v if seen.append(-v) is None else 0, [n, 7]) + 10_000 * sum(seen)


@case([1, 4, 6])
def nested_in_nested(n):
    total = 0

    def outer(k):
        def inner(j):
            nonlocal total
            if j > 1:
                total += j
            return j

        s = 0
        for i in range(k):
            s += inner(i)
        return s

    r = outer(n)
    return r * 100 + total


@case([1, 4, 6])
def a_cache_in_the_function(n):
    @functools.cache
    def ways(k):
        if k <= 1:
            return 1
        return ways(k - 1) + ways(k - 2)

    return ways(n)


@case([1, 2, 4])
def results_of_backtracking(n):
    found = []

    def search(k, total):
        if k == 0:
            found.append(total)
            return
        search(k - 1, total)
        search(k - 1, total + k)

    search(n, 0)
    return sum(found) * 100 + len(found)


@case([1, 6, 12])
def generator_in_a_loop(n):
    total = 0
    for a in divisors(n):
        for b in divisors(a):
            if b > 3:
                break
            total += a * b
    else:
        total += 1
    return total


@case([1, 6, 12])
def generator_consumed(n):
    return sum(divisors(n)) + max(divisors(n)) * 100 + (1 if any(d % 2 == 0 for d in divisors(n)) else 0)


def _table(n):
    return [[collatz(d, k) for k in range(n)] for d in divisors(n)]


@case([1, 4, 6])
def a_helper_that_is_one_comprehension(n):
    return sum(sum(row) * (k + 1) for k, row in enumerate(_table(n)))


@case([1, 2, 9])
def generators_that_delegate(n):
    total = 0
    for v in chained(n):
        total = total * 3 + v
        if total > 10**6:
            break
        n += 1
    else:
        total += 7
    return total + n


@case([1, 4, 12])
def generator_in_the_function(n):
    k = 1

    def multiples():
        for i in range(3):
            yield i * k

    total = 0
    for v in multiples():
        k += n
        total += v
    return total


@case([1, -4])
def imports_in_the_body(n):
    import math
    from math import sqrt as root

    assert root(4.0) == 2
    return math.pi + n if n > 0 else math.e + n


LIMIT = 3


@case([1, 7])
def declared_global(n):
    global LIMIT
    return n if n < LIMIT else LIMIT


def test_what_a_helper_raises() -> None:
    @pcbatch.batch
    def f(n):
        check(n)
        return n

    assert f(jnp.array([1, 50])).tolist() == [1, 50]
    with pytest.raises(BatchRuntimeError, match="raised `TooLarge`"):
        f(jnp.array([1, 101]))
    with pytest.raises(BatchRuntimeError, match="failed an assertion"):
        f(jnp.array([1, 13]))


def talk(x):
    print("value", x)
    return x + 1


def test_prints_of_a_helper(capfd: pytest.CaptureFixture[str]) -> None:
    f = pcbatch.batch(lambda n: talk(n))
    assert f(jnp.array([1, 4])).tolist() == [2, 5]
    assert sorted(capfd.readouterr().out.splitlines()) == ["[lane 0] value 1", "[lane 1] value 4"]


def test_each_call_keeps_its_types() -> None:
    @pcbatch.batch
    def f(n, x):
        return clamp(n, high=2**30), clamp(x, high=1e6)

    n, x = f(jnp.array([2**24 + 1, 3]), jnp.array([1.5, 2.0]))
    assert n.tolist() == [2**24 + 1, 3]
    assert x.tolist() == [1.5, 2.0]


def test_a_helper_that_traces_stays_a_primitive() -> None:
    def double(x):
        return 2 * x

    f = pcbatch.batch(lambda x: double(x) + 1)
    assert f.lower(jnp.arange(2)).as_text("cfg").count("func ") == 1
    assert f.lower(jnp.arange(2)).stages.helpers == ()


def test_primitive() -> None:
    @pcbatch.primitive
    def kept(x):
        if x > 2:
            return x
        return 1

    with pytest.raises(CompileError, match="PCB305"):
        pcbatch.batch(lambda n: kept(n))(jnp.arange(3))
    with pytest.raises(pcbatch.UsageError, match="PCB409"):
        pcbatch.primitive(3)  # type: ignore[type-var]


def test_reports() -> None:
    f = pcbatch.batch(lambda n: gcd(n, 6))
    (line,) = f.explain_schedule(jnp.arange(3)).along
    assert line.startswith("`gcd` (along_helpers.py:10): it branches on a value of the lane")


COUNT = 0
SEEN: list[Any] = []


def counts(n):
    global COUNT
    COUNT += 1
    return n + COUNT


def remembers(n):
    SEEN.append(n)
    return n


def opens(n):
    if n > 2:
        with open("file"):
            return n
    return 1


@pytest.mark.parametrize(("fn", "code"), [(counts, "PCB107"), (remembers, "PCB117"), (opens, "PCB102")])
def test_refused_at_the_line_of_the_helper(fn: Callable[..., Any], code: str) -> None:
    f = pcbatch.batch(lambda n: fn(n))
    with pytest.raises(CompileError) as info:
        f(jnp.arange(3))
    (diagnostic,) = info.value.diagnostics
    assert diagnostic.code == code
    assert diagnostic.primary is not None
    assert diagnostic.primary.loc.line > fn.__code__.co_firstlineno
    assert f"`{fn.__name__}` has no decorator, but " in diagnostic.notes[-1]
    assert SEEN == []


def test_a_generator_of_itself() -> None:
    def down(n):
        if n > 0:
            yield n
            yield from down(n - 1)

    assert pcbatch.batch(lambda n: sum(d for d in down(n)))(jnp.arange(3)).tolist() == [0, 1, 3]

    def outer(n):
        def inner(k):
            if k > 0:
                yield k
                yield from inner(k - 1)

        return sum(inner(n))

    assert pcbatch.batch(outer)(jnp.arange(3)).tolist() == [0, 1, 3]
