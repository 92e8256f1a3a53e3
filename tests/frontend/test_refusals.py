"""What is refused: the code, and the line counted from the `def` line."""

# ruff: noqa

from __future__ import annotations

import jax
import pytest

import pcbatch.errors
from tests.frontend.compiling import compiled, lane, refusals

ROWS = [[1, 2], [3, 4]]


@lane
def one(x, *, y=1):
    return x + y


def statements_of_many_kinds(n):
    try:
        n = 1
    except ValueError:
        n = 2
    with n:
        raise
    n.check()
    n = yield n
    global shadow
    import no_such_module
    from os import no_such_name as p

    class C:
        pass

    match n:
        case [a, *b]:
            pass
        case {"k": 1, **c}:
            pass
    del n
    m = (k := 3)
    return m


def targets(n, d):
    a, *b = n
    ROWS[0] = 1
    one.f, (ROWS[0], c) = 1, (2, 3)
    ROWS[0][1] += 1
    one.f += 1
    for ROWS[0] in range(3):
        pass
    del ROWS[0]
    return n


def effects(n):
    ROWS.append(1)
    n = print(n)
    n + 1
    n == 2
    one(n)
    return n


def builtins_that_see_the_frame(n):
    a = locals()
    b = eval("n")
    c = [vars() for _ in range(3)]
    return a, b, c


def iterables(n):
    for a in range(n, step=2):
        pass
    for a in enumerate(n, 1, 2):
        pass
    for a in range():
        pass
    for a in range(*n):
        pass
    for a in reversed(zip(n, n)):
        pass
    for a in zip():
        pass
    for a in enumerate(zip(n, n, other=2)):
        pass
    for a in reversed(reversed(n)):
        pass
    return n


def deletions(n):
    def twice(x):
        return 2 * x

    del twice
    return n


def walrus_in_messages(n):
    print(n, n := 5)
    assert (m := n) > 2, f"{(m := 3)}"
    if n > 3:
        raise ValueError(n, n := 2)
    return n + m


def calls(n, t):
    a = one()
    b = one(1, 2)
    c = one(1, z=3)
    d = one(1, x=3)
    e = one(*t)
    f = one(**t)
    return a, b, c, d, e, f


def nested_calls(n):
    a = [one(i) for i in range(3)]
    b = (lambda q: one(q))(n)

    def helper(q):
        return one(q) + n

    c = jax.vmap(one)(n)
    d = one
    return a, b, helper(n), c, d


def helpers_bound_twice(n, g):
    def h(x):
        return x

    h = 3

    def g(x):
        return x

    k = lambda x: x
    k = lambda x: x + 1
    return h, g(n), k(n)


def helper_definitions(n):
    def h(x, y=n):
        return x + y

    @jax.jit(n)
    def g(x):
        return x

    k = lambda x, y=n: x + y
    return h(n), g(n), k(n)


def helper_used_early(n):
    if n > 1:
        h = lambda q: q
    a = h(n)
    b = g(n)

    def g(q):
        return q

    return a + b + g(n)


def inside_helpers(n):
    def h(x):
        nonlocal n
        yield x

    def g(x):
        global m

        async def z():
            pass

    a = [w := i for i in range(3)]
    return h(n), g(n), a


def reserved(n):
    __pcbatch__ = n
    return n + __pcbatch__


def generator(n):
    n = yield n


async def coroutine(n):
    await n
    return n


CASES = [
    (statements_of_many_kinds, "102:6 103:7 119:8 105:9 108:11 108:12 109:14"),
    (targets, "117:3 117:4 117:4 117:5 117:6 117:7 117:9"),
    (effects, "117:2 119:3 119:4 119:5"),
    (builtins_that_see_the_frame, "120:2 120:3 120:4"),
    (iterables, "121:2 121:4 121:6 121:8 121:10 121:12 121:14 121:16"),
    (deletions, "113:5"),
    (walrus_in_messages, "114:2 114:3 114:5"),
    (calls, "204:2 204:3 204:4 204:5 205:7"),
    (nested_calls, "206:3 207:9"),
    (helpers_bound_twice, "203:2 203:7"),
    (helper_definitions, "209:2 209:5 209:9"),
    (helper_used_early, "201:4 201:5"),
    (inside_helpers, "304:13"),
    (reserved, "210:2 210:3"),
    (generator, "105:2"),
    (coroutine, "106:1 106:2"),
]


@pytest.mark.parametrize(("fn", "expected"), CASES, ids=lambda value: getattr(value, "__name__", ""))
def test_refused(fn, expected):
    found = [f"{code.removeprefix('PCB')}:{line}" for code, line in refusals(fn)]
    assert found == expected.split()


@pytest.mark.parametrize("fn", [fn for fn, _ in CASES], ids=lambda fn: fn.__name__)
def test_diagnostics_keep_to_the_style(fn):
    with pytest.raises(pcbatch.errors.CompileError) as info:
        compiled(fn)
    for found in info.value.diagnostics:
        assert found.helps or found.notes
        assert found.title[0] in "`(" or found.title[0].islower()
        assert not found.title.endswith(".")


def test_all_functions_report_together():
    @lane
    def bad(n):
        raise

        return 1

    @lane
    def calls_bad_ones(n):
        return bad(n) + also_bad(n)

    def entry(n):
        return calls_bad_ones(n)

    @lane
    def also_bad(n):
        ROWS.append(n)
        return n

    assert [code for code, _ in refusals(entry)] == ["PCB103", "PCB117"]


def test_batched_definition_inside():
    import types

    batch = types.FunctionType((lambda fn: fn).__code__, {}, "batch")
    batch.__module__ = "pcbatch.api.batch"

    def f(n):
        @batch
        def g(x):
            return x

        return g(n)

    def h(n):
        g = batch(lambda x: x)
        return g(n) + (lambda q=one(n), p=(z := 1): q)()

    assert refusals(f) == [("PCB208", 2)]
    assert refusals(h) == [("PCB208", 2), ("PCB206", 3), ("PCB114", 3)]


def test_class_private_names():
    class Some:
        def method(self, x):
            return self.__secret + x

    assert refusals(Some.method) == [("PCB122", 2)]


def test_what_is_never_reached_is_dropped_but_checked():
    def f(n):
        return n
        import no_such_module

    assert refusals(f) == [("PCB108", 3)]


def test_reads_after_del():
    def sometimes(n):
        y = n
        if n > 2:
            del y
        return y

    def in_a_loop(n):
        z = n
        while n > 0:
            n -= 1
            z += 1
            del z
        return n

    def assigned_again(n):
        y = n
        del y
        y = 1
        return y

    assert refusals(sometimes) == [("PCB212", 5)]
    assert refusals(in_a_loop) == [("PCB212", 5)]
    assert refusals(assigned_again) == []


def test_endless_loops_are_accepted():
    def f(n):
        while True:
            if n > 3:
                return n

    def g(n):
        while True:
            pass
        return n

    assert refusals(f) == [] and refusals(g) == []


def test_callees_of_unreachable_calls_are_left_out():
    @lane
    def ghost(n):
        import no_such_module

    def f(n):
        if False:
            return ghost(n)
        return n

    assert [g.name for g in compiled(f).functions] == ["f"]
