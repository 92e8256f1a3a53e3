"""Parts of the language that the named programs do not show by themselves: small functions, each in every lane."""

from __future__ import annotations

import functools
from typing import Any
from unittest.mock import Mock

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import pcbatch
from pcbatch import BatchRuntimeError, CompileError, Status
from tests.oracles.plans import replanned

pytestmark = pytest.mark.promotion("standard")
N = jnp.array([-2, 0, 1, 3, 6])
OPTIONS: tuple[dict[str, str], ...] = ({}, {"schedule": "sweep", "emitter": "port"}, {"strategy": "local"})


def same(fn: Any, *args: Any, lanes: int = len(N)) -> None:
    """The batched function gives in every lane what the plain one gives for that example."""
    batched = fn if isinstance(fn, pcbatch.Batched) else pcbatch.batch(fn)
    want = [batched.plain(*(jax.tree.map(lambda x, k=k: x[k], arg) for arg in args)) for k in range(lanes)]
    for options in OPTIONS:
        got = replanned(batched, **options)(*args)
        for k in range(lanes):
            for a, b in zip(jax.tree.leaves(got), jax.tree.leaves(want[k]), strict=True):
                np.testing.assert_allclose(a[k], b, rtol=1e-6, err_msg=f"{options}, lane {k}")


@pcbatch.batch
def doubled(x):
    return 2 * x if x > 0 else x


@pcbatch.batch
def moved(x, by):
    while x < by:
        x = x + 2
    return x


TABLE = {"double": doubled, "pair": (moved, doubled)}
MOVED = functools.partial(moved, by=4)
scale = 3


@pytest.mark.parametrize(
    "values",
    [(), (5,), [1, 2, 3], {"a": 1, "b": 2}, {"a": 1}.items(), range(3), "ab"],
    ids=["empty", "tuple", "list", "dict", "items", "range", "string"],
)
def test_loops_over_known_values(values: Any) -> None:
    def f(n):
        total, count = n, 0
        for value in values:
            if count > n:
                break
            count += 1
            total = total * 3 + (value if isinstance(value, int) else len(value))
        else:
            total = -total
        return total

    same(f, N)


def test_else_of_both_kinds_of_loops() -> None:
    def f(n):
        score = 0
        for k in range(n):
            if k == 4:
                break
            while k < 9:
                k += 4
                if k == 6:
                    break
            else:
                score += 1
                continue
            score += 10
        else:
            score += 100
        return score

    same(f, N)


def test_docstrings_annotations_and_pass() -> None:
    def f(n: int, *, more: float = 0.5) -> "anything at all":  # noqa: F722
        """What it does."""
        total: jnp.float32 = n + more
        "a string on its own"
        ...
        if n > 2:
            pass
        else:
            total: int = total - 1
        pass
        return total

    same(f, N)
    assert pcbatch.batch(f).__doc__ == "What it does."


def test_functions_from_a_table() -> None:
    def f(n):
        return TABLE["double"](n) + TABLE["pair"][0](n, 5) + TABLE["pair"][1](n)

    same(f, N)


def test_a_partial_of_a_batched_function() -> None:
    def f(n):
        return MOVED(n) + MOVED(n, by=2)

    same(f, N)


@pcbatch.batch
def gathered(x, *rest, by=1, **weights):
    for value in rest:
        x = x + value * by
    for name in weights:
        x = x * weights[name]
    return x if x > 0 else -x


ONE = functools.partial(gathered, 1)
MANY = functools.partial(functools.partial(gathered, 1, 2, scale=3, by=4), 5, other=-1)


def test_a_partial_that_fixes_more_than_named_parameters() -> None:
    def f(n):
        return ONE() + ONE(n, 2) + MANY(n) + MANY(n, scale=2, by=n) + MANY(third=n)

    same(f, N)


ARRAY = functools.partial(gathered, 1, jnp.ones(2))
WRONG = {
    "position": lambda n: MOVED(n, 3),
    "keyword": lambda n: STEPS(n),
    "count": lambda n: THREE(),
    "value": lambda n: ARRAY(n),
}
THREE = functools.partial(moved, 1, 2, 3)
STEPS = functools.partial(moved, steps=3)


@pytest.mark.parametrize("name", WRONG)
def test_a_partial_that_does_not_fit_is_refused(name: str) -> None:
    with pytest.raises(CompileError) as info:
        pcbatch.batch(WRONG[name])(N)
    assert info.value.diagnostics[0].code == ("PCB205" if name == "value" else "PCB204")
    if name != "value":
        with pytest.raises(TypeError):
            WRONG[name](1)


def test_known_values_decide_while_compiling() -> None:
    def mixed(n, mode="sum", extra=None, flags=("a", "b")):
        if extra is None and isinstance(mode, str):
            total = n + len(flags)
        else:
            total = n.there_is_no_such_attribute
        if mode == "sum" and "a" in flags:
            return total * scale
        return undefined_and_never_reached  # noqa: F821

    same(mixed, N)


def test_a_local_may_have_the_name_of_a_global() -> None:
    def f(n):
        scale, TABLE, jnp = n + 1, (1, 2), 5
        return scale * TABLE[1] + jnp

    same(f, N)


def test_comprehensions_of_known_length() -> None:
    def f(n):
        squares = [k * n for k in range(4) if k % 2]
        table = {name: value + 1 for name, value in zip("ab", squares, strict=True)}
        return table["b"], sum(value for value in squares), [[a - b for a in squares] for b in squares]

    same(f, N)


def test_messages_are_f_strings_of_the_lane() -> None:
    @pcbatch.batch
    def f(n, x):
        name = "n"
        assert n < 3, f"{name}={n:03d}, {x!r:>5} of {len('ab')}"
        if n == 1:
            raise KeyError(f"{x:.1f}")
        return n

    result = f.run(N, N / 2)
    assert result.status.tolist() == [0, 0, Status.ERROR, Status.ASSERTION, Status.ASSERTION]
    with pytest.raises(BatchRuntimeError) as info:
        f(N, N / 2)
    assert "n=003,   1.5 of 2" in str(info.value) and "n=006,   3.0 of 2" in str(info.value)
    assert "raised `KeyError`" in str(info.value) and ": 0.5" in str(info.value)


def test_prints_of_active_lanes_only(capfd: pytest.CaptureFixture[str]) -> None:
    @pcbatch.batch
    def f(n):
        while n > 1:
            print("at", n)
            n = n - 2
        if n == 1:
            jax.debug.print("end {n}", n=n)
        return n

    f(N)
    lines = capfd.readouterr().out.splitlines()
    assert sorted(lines) == ["[lane 2] end 1", "[lane 3] at 3", "[lane 3] end 1"] + [
        f"[lane 4] at {k}" for k in (2, 4, 6)
    ]


def test_a_helper_without_decorator_is_a_primitive() -> None:
    helper = Mock(side_effect=lambda x: jnp.where(x > 1, x * 2, x - 1))

    def f(n):
        while n < 9:
            n = helper(n) + 3
        return n

    pcbatch.batch(f)(N)
    assert [jnp.shape(call.args[0]) for call in helper.mock_calls] == [()], "traced once, for one example"
    same(f, N)


@pytest.mark.parametrize("rank", [0, 1, 2])
def test_no_lanes(rank: int) -> None:
    def f(x, n):
        while n > 0:
            x, n = x * 2, n - 1
        return x, doubled(n)

    x = jnp.zeros((0, 3, 2)[: rank + 1])
    values, counts = pcbatch.batch(f)(x, jnp.zeros(0, int))
    assert values.shape == x.shape and counts.shape == (0,)


def test_one_variable_through_many_types() -> None:
    def joined(n, x):
        a = 1 if n > 0 else x
        b = True if n > 2 else n > 0
        c = 0
        for k in range(n):
            c = c + (k if k % 2 else 0.5)
        return a, b, c, n + (1 if n else 1j)

    same(joined, N, N * 0.25)
