"""Nested functions and lambdas that a function compiled along hands on to code that is traced."""

from __future__ import annotations

import functools
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import pcbatch
from pcbatch import CompileError

pytestmark = pytest.mark.promotion("standard")


def twice(f, x):
    return f(f(x))


def descend(f, n):
    while n > 3:
        n = n - twice(f, n)
    return n


def _lambda(n):
    return descend(lambda x: x * 0.5, n)


def _capturing(n):
    k = n * 0.01
    return descend(lambda x: x * 0.5 + k, n)


def _nested_functions(n):
    c = 0.3

    def half(x):
        return x * c + tenth(x)

    def tenth(x):
        return x * 0.1

    return descend(half, n)


def _recursive(n):
    def part(x, k=3):
        return x * 0.5 if k == 0 else part(x, k - 1)

    return descend(part, n)


def _branching(n):
    def part(x):
        if x > 4:
            return x * 0.5
        return x * 0.25 + n * 0.001

    return descend(part, n)


def _cached(n):
    @functools.cache
    def half(x):
        return x * 0.5

    return descend(half, n)


def _names_that_collide(n):
    x = n * 0.01

    def f(n):
        return n * 0.5 + x

    return descend(f, n)


def _variables_of_the_time_of_the_call(n):
    k = 0.1

    def f(x):
        return x * k

    k = 0.5
    first = descend(f, n)
    k = 0.6
    return first + descend(f, n)


def two(f, g, n):
    while n > 3:
        n = n - twice(f, n) - twice(g, n) * 0.1
    return n


def _two_functions(n):
    k = n * 0.01
    f = lambda x: x * 0.5 + k
    return two(f, f, n) + two(lambda x: x * k, f, n)


def through_another(f, x):
    return twice(lambda t: f(t) + 1, x)


def descend_through_another(f, n):
    while n > 3:
        n = n - through_another(f, n)
    return n


def _two_levels_of_traced_code(n):
    k = n * 0.01
    return descend_through_another(lambda x: x * 0.4 + k, n)


def repeated(f, n):
    k = 0
    while k < 2:
        n = descend(f, n) + k
        k += 1
    return n


def _two_levels_of_compiled_code(n):
    k = 0.2
    return repeated(lambda x: x * k + n * 0.001, n)


def wrapped(g, n):
    if n > 5:
        return descend(lambda t: g(t) * 0.5, n)
    return twice(g, n)


def _a_lambda_around_a_lambda(n):
    k = n * 0.001
    return wrapped(lambda x: x * 0.7 + k, n)


def rule(f, a, b):
    c = (a + b) / 2
    return (b - a) / 6 * (f(a) + 4 * f(c) + f(b))


def simpson(f, a, b, eps):
    c = (a + b) / 2
    whole, left, right = rule(f, a, b), rule(f, a, c), rule(f, c, b)
    if abs(left + right - whole) < eps:
        return left + right
    return simpson(f, a, c, eps / 2) + simpson(f, c, b, eps / 2)


def _adaptive_simpson(n):
    def g(x):
        return jnp.exp(-x * n * 0.1)

    return simpson(g, 0.0, 2.0, 1e-3) + simpson(lambda x: x**5 / n, 0.0, 2.0, 1e-2)


def newton(f, x):
    k = 0
    while abs(f(x)) > 1e-3 and k < 20:
        x = x - f(x) / jax.grad(f)(x)
        k += 1
    return x


def _transformed_by_jax(n):
    return newton(lambda x: x * x - n, n)


def in_many_places(f, n):
    while n > 3:
        n = n - sum([f(k * 0.1) for k in range(3)]) - functools.partial(twice, f)(n)
        n = n - functools.reduce(lambda a, b: f(a + b), [0.1, 0.2]) - twice(f=f, x=n) - max([1.0, 2.0], key=f)
    return n


def _in_many_places(n):
    k = n * 0.01
    return in_many_places(lambda x: x * 0.3 + k, n)


class Scaled:
    def __init__(self, f):
        self.f = f

    def of(self, x):
        return self.f(x) * 2

    def given(self, f, x):
        return f(x)


def by_methods(f, n):
    while n > 3:
        n = n - Scaled(f).of(n) - Scaled(None).given(f, n)
    return n


def _given_to_methods(n):
    k = n * 0.01
    return by_methods(lambda x: x * 0.1 + k, n)


def terms(f, n):
    while n > 3:
        yield n
        n = n - twice(f, n)


def _given_to_a_generator(n):
    k = n * 0.001
    return sum(terms(lambda x: x * 0.5 + k, n))


def perhaps(f, n):
    if f is None or not callable(f):
        return n
    while n > 3:
        n = n - twice(f, n)
    return n


def _asked_for_what_it_is(n):
    return perhaps(lambda x: x * 0.5, n) + perhaps(None, n)


def held(f, n):
    g = f
    while n > 3:
        n = n - g(n)
    return n


def _in_another_variable(n):
    return held(lambda x: x * 0.5, n)


def given_back(f, n):
    if n > 3:
        n = twice(f, n)
    return f


def _given_back(n):
    return given_back(lambda x: x * 0.5, n)(n)


def _assigns_a_variable_around_it(n):
    c = 0

    def f(x):
        nonlocal c
        c += 1
        return x * 0.5

    return descend(f, n) * 100 + c


def _changes_a_list_around_it(n):
    seen = []

    def f(x):
        seen.append(x)
        return x * 0.5

    return descend(f, n) * 100 + len(seen)


def _from_a_nested_function(n):
    c = 0

    def f(x):
        nonlocal c
        c += 1
        return x * 0.5

    def inner(g, m):
        while m > 3:
            m = m - sorted([2.0, 1.0], key=g)[0]
        return m

    return inner(f, n) + c


def _calls_the_function_around_it(n):
    calls = 0

    def outer(i):
        nonlocal calls
        calls += 1

        def inner(j):
            return outer(j - 3) if j > 4 else j + n

        return i * n if i < 0 else inner(i - 1) + inner(i + 2)

    return outer(n) + 100 * calls


def _twice(f, x):
    return f(x - 2) + f(x - 3) if x > 3 else x


def _hands_on_a_function_that_calls_the_one_around_it(n):
    def outer(i):
        return i * n if i < 0 else _twice(lambda e: outer(e - 1), i)

    return outer(n)


@pytest.mark.parametrize(
    "function",
    [
        _lambda,
        _capturing,
        _nested_functions,
        _recursive,
        _branching,
        _cached,
        _names_that_collide,
        _variables_of_the_time_of_the_call,
        _two_functions,
        _two_levels_of_traced_code,
        _two_levels_of_compiled_code,
        _a_lambda_around_a_lambda,
        _adaptive_simpson,
        _transformed_by_jax,
        _in_many_places,
        _given_to_methods,
        _given_to_a_generator,
        _asked_for_what_it_is,
        _in_another_variable,
        _given_back,
        _assigns_a_variable_around_it,
        _changes_a_list_around_it,
        _from_a_nested_function,
        _calls_the_function_around_it,
        _hands_on_a_function_that_calls_the_one_around_it,
    ],
)
def test_as_in_python(function: Any) -> None:
    args = np.array([2.0, 6.0, 9.0])
    want = [float(function(n)) for n in args.tolist()]
    np.testing.assert_allclose(pcbatch.batch(function)(args), want, rtol=1e-4)


def slope(f, n):
    while n > 3:
        n = n - jax.grad(f)(n)
    return n


def _counted(n):
    calls = 0

    def f(x):
        nonlocal calls
        calls += 1
        return x * 0.5

    return slope(f, n) + calls


def _kept(n):
    k = n * 0.01
    return held(lambda x: x * 0.5 + k, n)


@pytest.mark.parametrize("function", [_counted, _kept])
def test_functions_that_become_values(function: Any) -> None:
    ns = np.array([2.0, 6.0])
    np.testing.assert_allclose(pcbatch.batch(function)(ns), [function(n) for n in ns], rtol=1e-6)


def shaped(f, n):
    while n > 3:
        n = n - f(n) @ jnp.ones((3, 3))
    return n


def test_the_help_names_the_function_that_has_a_plain_one() -> None:
    def entry(n):
        return shaped(lambda x: x, n)

    with pytest.raises(CompileError) as info:
        pcbatch.batch(entry)(np.array([2.0, 6.0]))
    assert info.value.diagnostics[0].helps == ("`entry.plain(...)` with one example shows the whole traceback",)
    with pytest.raises(CompileError, match=r"the plain function with one example shows the whole traceback"):
        pcbatch.batch(lambda n: shaped(lambda x: x, n))(np.array([2.0, 6.0]))
