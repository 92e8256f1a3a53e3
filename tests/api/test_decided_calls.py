"""Repeated plain calls that run decided: one program, one array read, and otherwise the outcome of any call."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import pcbatch
from pcbatch.compiler.program import Program


def collatz(n):
    count = 0
    while n != 1:
        n = n // 2 if n % 2 == 0 else 3 * n + 1
        count += 1
    return count


def gcd(a, b):
    while b:
        a, b = b, a % b
    return a


def fib(n):
    return n if n < 2 else fib(n - 2) + fib(n - 1)


def of_dict(d):
    n, total = d["n"], d["c"]
    while n > 0:
        n, total = n - 1, total + n
    return {"total": total, "n": n}, (total, n)


def up_to(n):
    out = []
    for k in range(n):
        out.append(k * k)
    return out


def scaled(x, by):
    while x < 8:
        x = x + by
    return x


def rooted(n):
    assert n > 0, f"{n} has no root"
    while n > 9:
        n = n // 2
    return n


def deep(n):
    return 0 if n == 0 else 1 + deep(n - 1)


NUMBERS = np.array([7, 1, 12], np.int32)


@contextmanager
def decided(f: Any) -> Iterator[list[int]]:
    """Return the number of programs run by calls in this context, none of which may be decided anew."""
    plans, ran = f._programs.repeated.plans, []
    for key, plan in list(plans.items()):
        assert plan.direct is not None

        def program(*arrays: Any, program: Any = plan.direct.program) -> Any:
            ran.append(len(arrays))
            return program(*arrays)

        plans[key] = replace(plan, direct=replace(plan.direct, program=program))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Program, "execute", None)
        patch.setattr("pcbatch.api.programs.prepare", None)
        yield ran


CALLS: list[tuple[Any, tuple[Any, ...]]] = [
    (collatz, (NUMBERS,)),
    (gcd, (NUMBERS, NUMBERS[::-1])),
    (fib, (NUMBERS,)),
    (of_dict, ({"n": NUMBERS, "c": NUMBERS + 1},)),
    (up_to, (NUMBERS,)),
]


@pytest.mark.parametrize(("fn", "args"), CALLS, ids=lambda x: getattr(x, "__name__", ""))
@pytest.mark.parametrize("of", [np.asarray, jnp.asarray], ids=["numpy", "jax"])
def test_a_repeated_call_is_one_program_and_one_array_read(fn: Any, args: Any, of: Any, monkeypatch: Any) -> None:
    f, args = pcbatch.batch(fn), jax.tree.map(of, args)
    first, again = jax.tree.leaves(f(*args)), jax.tree.map(lambda x: of(x[::-1].copy()), args)
    want = jax.tree.leaves(pcbatch.batch(fn)(*again))
    read = []
    monkeypatch.setattr("pcbatch.api.repeated_calls.np.count_nonzero", lambda x: (read.append(x), x.any())[1])
    with decided(f) as ran:
        found, once_more = jax.tree.leaves(f(*again)), jax.tree.leaves(f(*args))
        assert len(ran) == len(read) == 2
        run = f.run(*args)
    assert len(ran) == 3 and run.status.tolist() == [0, 0, 0] and run.stats.trips == 1
    for one, other in zip((*found, *once_more, *jax.tree.leaves(run.value)), (*want, *first, *first), strict=True):
        np.testing.assert_array_equal(one, other)
        assert one.dtype == other.dtype and isinstance(one, jax.Array)


@pytest.mark.parametrize("lanes", [1, 16, 256])
def test_numbers_of_lanes(lanes: int) -> None:
    f, ns = pcbatch.batch(fib, plan=pcbatch.Plan(fork="auto")), np.arange(lanes, dtype=np.int32) % 9
    for shift in range(3):
        assert f((ns + shift) % 9).tolist() == [fib(int(n)) for n in (ns + shift) % 9]


def test_numbers_of_python_are_looked_at() -> None:
    f, x = pcbatch.batch(scaled, in_axes=(0, None)), np.array([0.5, 7.0], np.float32)
    assert f(x, 3).tolist() == [9.5, 10.0]
    with decided(f):
        assert f(x, 1).tolist() == [8.5, 8.0]
        assert f(jnp.asarray(x), 4).tolist() == [8.5, 11.0]
    assert f(x, 0.5).tolist() == [8.0, 8.0] and f(x, 2.5).tolist() == [8.0, 9.5]
    whole = np.array([1, 5], np.int32)
    assert f(whole, 2).tolist() == [9, 9]
    for _ in range(2):
        with pytest.raises(pcbatch.UsageError, match="`by` does not fit"):
            f(whole, 2**40)
    assert f(whole, 3).tolist() == [10, 8]


def test_equal_numbers_are_two_arguments() -> None:
    def between(x, low, high):
        return low if x < low else high if x > high else x

    f, x = pcbatch.batch(between, in_axes=(0, None, None)), np.array([1, 5, 9], np.int32)
    assert f(x, 4, 4).tolist() == [4, 4, 4]
    with decided(f):
        assert f(x, 2, 6).tolist() == [2, 5, 6]


def test_the_order_of_a_dict_of_arrays_of_numpy() -> None:
    def digits(table):
        out = 0
        for value in table.values():
            out = 10 * out + value
        return out

    f, one, two = pcbatch.batch(digits), np.array([1]), np.array([2])
    for _ in range(2):
        assert (f({"a": one, "b": two})[0], f({"b": two, "a": one})[0]) == (12, 21)
    with decided(f):
        assert (f({"a": two, "b": one})[0], f({"b": one, "a": two})[0]) == (21, 12)


def test_arrays_of_numpy_may_be_changed_after_the_call() -> None:
    f, ns = pcbatch.batch(rooted, plan=pcbatch.Plan(emitter="scalar")), np.ones(1000, np.int32)
    f(ns)
    with decided(f):
        kept = f(ns)
    ns[:] = 2
    assert kept.tolist() == [1] * 1000


@pytest.mark.parametrize(
    "x", [np.arange(3, dtype=">i4"), np.arange(3.0, dtype=np.longdouble), np.arange(12)[::4]], ids=str
)
def test_uncommon_arrays_of_numpy(x: Any) -> None:
    f, outcomes = pcbatch.batch(lambda x: x + 1), []
    for _ in range(3):
        try:
            outcomes.append(f(x).tolist())
        except Exception as error:
            outcomes.append(f"{type(error).__name__}: {error}")
    assert outcomes[0] == outcomes[1] == outcomes[2] != "TypeError"


class TestLanesThatFail:
    def test_they_are_named_and_run_once(self) -> None:
        f, bad = pcbatch.batch(rooted), np.array([20, -3, 5], np.int32)
        assert f(NUMBERS).tolist() == [7, 1, 6]
        with decided(f) as ran:
            with pytest.raises(
                pcbatch.BatchRuntimeError, match=r"1 of 3 lanes failed an assertion(.|\n)*-3 has no root"
            ):
                f(bad)
            assert len(ran) == 1
            run = f.run(bad)
            assert run.status.tolist() == [0, int(pcbatch.Status.ASSERTION), 0] and run.value[2] == 5
            assert len(ran) == 2 and f(NUMBERS).tolist() == [7, 1, 6]

    def test_a_limit_of_depth(self) -> None:
        f = pcbatch.batch(deep, max_depth=20)
        assert f(NUMBERS).tolist() == NUMBERS.tolist()
        with decided(f):
            assert f.run(NUMBERS + 10).status.tolist() == [0, 0, int(pcbatch.Status.STACK_FULL)]
            with pytest.raises(pcbatch.BatchRuntimeError, match="ran out of stack"):
                f(NUMBERS + 10)


class TestRoom:
    def test_stacks_that_grow(self) -> None:
        f = pcbatch.batch(deep)
        assert f(NUMBERS).tolist() == NUMBERS.tolist()
        assert f(NUMBERS * 50).tolist() == (NUMBERS * 50).tolist()
        for _ in range(2):
            assert f(NUMBERS).tolist() == NUMBERS.tolist()
        with decided(f) as ran:
            assert f(NUMBERS * 50).tolist() == f.run(NUMBERS * 50).value.tolist() == (NUMBERS * 50).tolist()
        assert len(ran) == 2, "the depth that was needed is the one to begin with"

    def test_lists_that_grow(self) -> None:
        f = pcbatch.batch(up_to)
        for factor in (1, 10, 1, 10):
            assert f(NUMBERS * factor).tolist() == [up_to(int(n)) for n in NUMBERS * factor]
        with decided(f):
            assert f(NUMBERS * 10).tolist() == [up_to(int(n)) for n in NUMBERS * 10]

    def test_lists_that_may_not_grow(self) -> None:
        f = pcbatch.batch(up_to, max_length=8)
        assert f(NUMBERS[:2]).tolist() == [up_to(7), [0]]
        with decided(f):
            assert f(NUMBERS[:2]).tolist() == [up_to(7), [0]]
        for _ in range(2):
            assert f.run(NUMBERS[1:]).status.tolist() == [0, int(pcbatch.Status.LIST_FULL)]

    def test_states_that_are_dealt_out_in_rounds(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr("pcbatch.runtime.execute.executor.AT_ONCE", 1000)
        f, ns = pcbatch.batch(collatz, plan=pcbatch.Plan(emitter="scalar")), np.arange(1, 2001, dtype=np.int32)
        for _ in range(2):
            assert f(ns).tolist() == [collatz(int(n)) for n in ns]
        assert [plan.direct for plan in f._programs.repeated.plans.values()] == [None]


class TestWhatIsAround:
    """What a decided run leaves out is never wanted by the call."""

    def test_options_of_a_run(self) -> None:
        f, ns = pcbatch.batch(collatz), NUMBERS
        f(ns)
        seen: list[Any] = []
        assert f(ns, progress=lambda *counts: seen.append(counts)).tolist() == [16, 0, 9] and seen
        assert f.run(ns, timeout=60).status.tolist() == [0, 0, 0]
        assert f(ns, devices=jax.devices()[:2]).tolist() == [16, 0, 9]

    def test_transformations(self) -> None:
        f, ns = pcbatch.batch(collatz), jnp.asarray(NUMBERS)
        f(ns)
        assert jax.jit(f)(ns).tolist() == jax.jit(lambda: f(ns))().tolist() == [16, 0, 9]
        assert jax.vmap(f)(ns[None]).tolist() == [[16, 0, 9]]

    def test_checks_for_nan(self) -> None:
        f = pcbatch.batch(lambda x: jnp.sqrt(x))
        assert np.isnan(f(np.array([-1.0, 4.0], np.float32)))[0]
        with jax.debug_nans(True), pytest.raises(pcbatch.NonFiniteError):
            f(np.array([-1.0, 4.0], np.float32))

    def test_another_default_device(self) -> None:
        f, ns = pcbatch.batch(collatz), NUMBERS
        f(ns)
        there = jax.devices()[-1]
        with jax.default_device(there):
            assert f(ns).devices() == {there}
        assert f(ns).devices() == {jax.devices()[0]}

    def test_without_jit(self) -> None:
        f = pcbatch.batch(rooted)
        f(NUMBERS)
        with jax.disable_jit():
            assert f(NUMBERS).tolist() == [7, 1, 6]

    def test_arguments_that_are_gone(self) -> None:
        f, ns = pcbatch.batch(collatz), jnp.asarray(NUMBERS)
        f(ns)
        gone = jnp.asarray(NUMBERS)
        gone.delete()
        with pytest.raises(RuntimeError, match="deleted"):
            f(gone)

    def test_methods_and_names(self) -> None:
        class Steps:
            @pcbatch.batch
            def by(self, n, step):
                while n > 0:
                    n = n - step
                return n

        steps = Steps()
        for _ in range(2):
            assert steps.by(NUMBERS, np.full(3, 2, np.int32)).tolist() == [-1, -1, 0]
            assert steps.by(step=np.full(3, 5, np.int32), n=NUMBERS).tolist() == [-3, -4, -3]


def test_memory_that_is_lacking_is_no_refusal_of_the_compiler(monkeypatch: pytest.MonkeyPatch) -> None:
    """Lanes run together where XLA cannot compile a native function, and not where it cannot run one."""
    f, runs = pcbatch.batch(collatz), []

    def run(program: Program, *_: Any) -> Any:
        runs.append(program.is_alone_by_choice)
        raise jax.errors.JaxRuntimeError("RESOURCE_EXHAUSTED: Out of memory allocating 1 bytes.")

    monkeypatch.setattr(Program, "execute", run)
    for _ in range(2):
        with pytest.raises(jax.errors.JaxRuntimeError, match="RESOURCE_EXHAUSTED"):
            f(NUMBERS)
        f._programs.repeated.plans.clear()
    assert runs == [True, True] and not f._programs.refused


def test_one_array_for_two_parameters() -> None:
    for of in (np.asarray, jnp.asarray):
        f, a, b = pcbatch.batch(gcd), of(NUMBERS), of(NUMBERS[::-1].copy())
        assert f(a, a).tolist() == NUMBERS.tolist()
        with decided(f):
            assert f(a, b).tolist() == [1, 1, 1] and f(b, b).tolist() == NUMBERS[::-1].tolist()


def _total(xs):
    total = 0
    for x in xs:
        total += x
    return total


@pytest.mark.parametrize("width", [5, 32])
def test_lengths_of_lists_are_looked_at_in_each_call(width: int) -> None:
    """Also where a call before had lists of the same types; those of any width are planned."""
    f, lists = pcbatch.batch(_total), pcbatch.ragged([[1] * width, [2, 3]])
    assert f(lists).tolist() == f(lists).tolist() == [width, 5]
    assert any(plan is not None for plan in f._programs.repeated.plans.values())
    for lengths in ([-1, 2], [2, width + 1]):
        with pytest.raises(pcbatch.UsageError):
            f(pcbatch.Ragged(lists.values, np.array(lengths, np.int32)))
    assert f(lists).tolist() == [width, 5]


def _heaviest(edges):
    best = (0, 0, 0)
    for edge in edges:
        if edge[2] > best[2]:
            best = edge
    return best


def _sums(rows):
    return [sum(row) for row in rows]


def _lengths(words):
    return sum(len(word) * k for k, word in enumerate(words))


NESTED: list[tuple[Callable[..., Any], list[Any], list[Any]]] = [
    (_heaviest, [[(1, 2, 3), (4, 5, 6)], [(7, 8, 9)], []], [[(1, 1, 1)], [(2, 2, 2), (0, 0, 7)], [(0, 0, 1)]]),
    (_sums, [[[1], [2, 3, 4]], [], [[]]], [[[5, 5]], [[1, 1, 1]], [[9], [8]]]),
    (_lengths, [["a", "bcd"], ["efg"], []], [["ab"], ["", "h"], ["x", "yyy"]]),
]


@pytest.mark.parametrize(("plain", "first", "second"), NESTED)
def test_lists_of_lists_tuples_and_texts(plain: Callable[..., Any], first: list[Any], second: list[Any]) -> None:
    """A call is decided once whatever is in the lists; another one has its own elements and lengths."""
    f = pcbatch.batch(plain)
    f(pcbatch.ragged(first))
    with decided(f):
        for lists in (first, second, first):
            found = f(pcbatch.ragged(lists))
            for lane, each in enumerate(lists):
                want = plain(each)
                one = found[lane] if not isinstance(want, tuple) else [int(part[lane]) for part in found]
                assert np.asarray(one).tolist() == (list(want) if isinstance(want, tuple) else want)


def test_lengths_of_inner_lists_are_looked_at() -> None:
    f, lists = pcbatch.batch(_sums), pcbatch.ragged([[[1], [2, 3]], [[4]]])
    f(lists)
    inner = lists.values
    for lengths in (inner.lengths + 2, inner.lengths - 3):
        with pytest.raises(pcbatch.UsageError):
            f(pcbatch.Ragged(pcbatch.Ragged(inner.values, lengths.astype(np.int32)), lists.lengths))
    with pytest.raises(pcbatch.UsageError):
        f(pcbatch.Ragged(inner, lists.lengths + 1))
    assert f(lists).tolist() == [[1, 5], [4]]
