"""Expressions: short circuits, chains, ternaries, calls of batched functions, helpers, scoping."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import pytest

from pcbatch.ir.ops import Prim
from pcbatch.lowering.diagnose.traceback_spans import user_frames
from tests.frontend.compiling import agree, compiled, lane, run, texts
from tests.oracles.interpret_cfg import interpret_cfg

LIMIT = 5
shadowed = 1000


@lane
def fib(n):
    if n <= 1:
        return 1
    return fib(n - 2) + fib(n - 1)


@lane
def even(n):
    return True if n == 0 else odd(n - 1)


@lane
def odd(n):
    return False if n == 0 else even(n - 1)


@lane
def affine(a, b=10, /, c=3, *, d, e=(1, 2)):
    return a * 1000 + b * 100 + c * 10 + d + e[1]


def test_short_circuit_protects_the_right_side():
    def f(x):
        if x != 0 and 10 // x > 2:
            return 1
        if x == 0 or 10 // x < -2:
            return 2
        return 3

    agree(f, 0, 1, 4, 9, -1, -4)


def test_and_or_give_values():
    def f(x, y):
        a = x and y
        b = x or y
        c = x and y or 7
        d = (x or 3) + (y and 2 // y)
        x = x and x + 1
        y = y and 0 or y and 4
        return a, b, c, d, x, y

    agree(f, (0, 0), (0, 2), (3, 0), (3, 4))


def test_not_in_and_membership():
    def f(x):
        a = not x
        b = not (x > 2 and x < 9)
        c = x in (1, 2, 3)
        d = x not in [4, 5]
        if not (x == 3 or not x < 8):
            return a, b, c, d, 1
        return a, b, c, d, 0

    agree(f, 0, 1, 3, 4, 8, 9)


def test_membership_of_traced_values():
    def f(x):
        return x in (1, 2, 3), x not in jnp.array([4, 5])

    values = [tuple(map(bool, run(f, jnp.int32(k)))) for k in (1, 4, 9)]
    assert values == [(True, True), (False, False), (False, True)]


def test_chained_comparison_evaluates_the_middle_once_and_stops_early():
    def f(x, y):
        a = 0 < x < 10
        b = 0 < fib(x) <= y < 1 // (x - 100) + 100
        if 1 < x < y < 1 / (x - 3):
            return a, b, 1
        return a, b, 0

    agree(f, (0, 0), (2, 2), (5, 9), (3, 1))


@lane
def same(x):
    return x


def test_a_chain_makes_the_calls_that_python_makes():
    def condition(x):
        if 0 < same(x) < 10 < same(x + 8):
            return 1
        return 0

    def value(x):
        return 0 < same(x) < 10 < same(x + 8)

    for f in (condition, value):
        agree(f, -1, 2, 3, 20)
        calls = [interpret_cfg(compiled(f), (x,))[1].pushjumps for x in (-1, 2, 3, 20)]
        assert calls == [1, 2, 2, 1]


def test_a_ternary_as_a_condition():
    def f(x, y):
        if x > 2 if y else x < -2:
            return 1
        while not (x == 5 if y > 1 else x >= 7):
            x += 1
        return x

    agree(f, (3, 1), (0, 0), (0, 2), (-5, 0), (-5, 3), (9, 0))


def test_ternary_runs_one_arm():
    def f(x):
        y = 10 // x if x else -1
        z = (1 if x > 3 else 2 if x > 2 else 3) + (0 if y else 1)
        return y if y > 1 else (z, y)

    agree(f, 0, 1, 3, 4, 11)


def test_recursion():
    agree(fib, *range(10))
    agree(even, 0, 5, 6)
    assert [f.name for f in compiled(even).functions] == ["even", "odd"]


def test_recursion_through_the_plain_name():
    def fact(n):
        return 1 if n == 0 else n * fact(n - 1)

    agree(fact, 0, 5)


def test_calls_inside_expressions_run_only_when_python_runs_them():
    @lane
    def down(n):
        return down(n - 1) if n > 0 else n // (n == 0)

    def f(x):
        a = down(x) if x >= 0 else 5
        b = x >= 0 and down(x) == 0
        c = [fib(fib(x % 4)), {"k": fib(2) + x}, -fib(x % 3)]
        d = (lambda q: q + 1)(fib(3))
        while fib(x % 5) < 4 and x < 20:
            x += 1
        fib(2)
        return a, b, c, d, x

    agree(f, -3, 0, 3)


def test_arguments_bind_as_in_python():
    def f(x):
        return affine(x, d=1), affine(x, 2, d=x), affine(x, 2, 5, d=x, e=(0, x)), affine(x, e=(x, x), d=fib(3), c=1)

    agree(f, 0, 4)


def test_defaults_are_the_objects_themselves():
    start = jnp.arange(3)

    @lane
    def total(n, xs=start):
        return n if n > 0 else xs

    def f(n):
        return total(n)

    assert run(f, 0) is start


def test_locals_hide_globals_and_cells():
    cell = 3

    def f(n):
        shadowed = n + LIMIT
        value = shadowed + cell
        sum = value
        return sum + max(n, 2)

    agree(f, 1, 9)


def test_globals_are_looked_up_when_run():
    def f(n):
        return n + LIMIT

    program = compiled(f)
    expr = program.functions[0].blocks[0].ops[0].expr
    f.__globals__["LIMIT"] = 50
    try:
        assert expr.fn(1) == 51
    finally:
        f.__globals__["LIMIT"] = 5


def test_nested_functions_bind_late():
    def f(x):
        def scaled(q):
            return q * factor + offset(q)

        offset = lambda q: q + x
        factor = 2
        a = scaled(x)
        factor = 5
        x = x + 1
        return a, scaled(x), [scaled(i) for i in range(x) if i % 2]

    agree(f, 1, 4)


def test_a_parameter_of_a_nested_function_hides_a_batched_one():
    def f(x):
        def apply(fib, v):
            return fib(v) + 1

        return apply(lambda v: v * 2, x)

    agree(f, 1, 4)


def test_a_value_assigned_over_what_a_helper_reads():
    def f(x):
        get = lambda: x
        x = x > 1 and get()
        return x

    agree(f, 0, 1, 2, 3)


def test_recursive_helper_and_inner_control_flow():
    def f(x):
        def power(b, n):
            if n == 0:
                return 1
            try:
                return b * power(b, n - 1)
            finally:
                pass

        return power(x, 3)

    agree(f, 2, 3)


def test_grad_of_a_nested_function():
    def f(x):
        def loss(q):
            return jnp.sum((q - x) ** 2)

        g = jax.grad(loss)(x + 1.0)
        return jax.lax.cond(x > 0, lambda: g, lambda: -g)

    assert float(run(f, jnp.float32(1.0))) == 2.0
    assert texts(f)[0] == "jax.grad(loss)(x + 1.0)"
    assert compiled(f).functions[0].blocks[0].ops[0].expr.ins == ("x",)


def test_locals_hide_batched_functions():
    @lane
    def fib(n):
        return n * 1000

    def cell(n):
        return fib(n) + same(n)

    def nested(n):
        def same(x):
            return x + 500

        return same(n)

    def parameter(n, same):
        return same[0] + n

    agree(cell, 3)
    agree(nested, 3)
    agree(parameter, (3, (1, 2)))
    assert [f.name for f in compiled(cell).functions] == ["cell", "fib", "same"]
    assert [f.name for f in compiled(nested).functions] == ["nested"]


def test_names_of_inner_scopes_are_not_read_from_outside():
    def f(n):
        xs = [i * n for i in range(3)]
        shift = lambda k, *ks, by=2, **kw: k + by
        total = shift(n)
        i = k = by = xs[1] + total
        return i + k + by

    agree(f, 3)
    reads = {op.expr.text: op.expr.ins for op in compiled(f).functions[0].blocks[0].ops if isinstance(op, Prim)}
    assert reads["[i * n for i in range(3)]"] == reads["shift(n)"] == ("n",)


def test_comprehensions_have_their_own_scope():
    def f(n):
        i = 100
        xs = [i * n for i in range(3)]
        ys = {k: i for k in range(2)}
        zs = sum(a + b for a in range(n) for b in range(a))
        return i, xs, ys, zs, tuple(i for i in xs)

    agree(f, 0, 3)


def test_starred_values_inside_primitives():
    def f(n):
        pair = (n, 2)
        return max(*pair), [*pair, n], {**{"a": n}}

    agree(f, 1, 4)


def test_texts_are_clean():
    def f(n, xs):
        if n <= 1 and not n:
            return -n
        n += 2
        for x in xs:
            n = n + x
        a, b = xs
        return f"{n}"

    assert texts(f)[:4] == ["n <= 1", "n", "-n", "n + 2"]
    assert {"len(t2)", "t2[t4]", "t4 < t3"} <= set(texts(f))


def test_locations_point_into_the_file():
    op = compiled(fib).functions[0].blocks[2].ops[0]
    code = fib.fn.__code__
    assert (op.loc.file, op.loc.line, op.loc.col) == (code.co_filename, code.co_firstlineno + 4, 15)


def test_tracebacks_point_to_the_users_line():
    def f(n):
        m = n
        return m + "text"

    op = compiled(f).functions[0].blocks[0].ops[1]
    with pytest.raises(TypeError) as info:
        op.expr.fn(1)
    frame = user_frames(info.value)[-1]
    assert (frame.loc.file, frame.loc.line, frame.name) == (__file__, f.__code__.co_firstlineno + 2, "f")


def test_unpacking_errors_are_pythons_own():
    def f(n):
        a, b = (n, n, n)
        return a + b

    with pytest.raises(ValueError, match="too many values"):
        run(f, 1)


def test_result_and_temporaries_avoid_the_users_names():
    def f(r, t0):
        return fib(r) + t0

    function = compiled(f).functions[0]
    assert function.results == ("r_",) and "t1" in function.types and set(function.types.values()) == {None}


def test_two_functions_of_one_name():
    def make(k):
        @lane
        def step(n):
            return n + k

        return step

    one, two = make(1), make(2)

    def f(n):
        return one(two(n)) + one(n)

    agree(f, 5)
    assert [g.name for g in compiled(f).functions] == ["f", "step", "step_2"]
