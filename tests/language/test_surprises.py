"""Programs and calls that once gave wrong values or unhelpful errors: arguments, ranges, numbers, unbound names."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import pcbatch
from pcbatch import BatchRuntimeError, CompileError, UsageError
from pcbatch.api.dump import dump
from pcbatch.call.out_axes import leaf_axes

pytestmark = pytest.mark.promotion("standard")
ONES = np.ones(2, np.float32)


def assert_as_plain(fn: Callable[..., Any], *args: Any) -> None:
    """Every lane equals the plain function."""
    batched = pcbatch.batch(fn)
    want = [int(batched.plain(*(arg[k] for arg in args))) for k in range(len(args[0]))]
    assert np.asarray(batched(*args)).tolist() == want


class TestNoneInPytrees:
    """None is no leaf, but has a place among the axes."""

    def test_the_array_after_it_is_mapped(self) -> None:
        @pcbatch.batch
        def grow(x, pair):
            while x < 5:
                x += pair[1]
            return x

        assert grow(jnp.array([1, 2]), (None, jnp.array([3, 4]))).tolist() == [7, 6]

    @pytest.mark.parametrize(
        ("axes", "value", "want"),
        [
            (0, {"a": None, "b": ONES}, [0]),
            ((None, 0), (None, ONES), [0]),
            ((0, None, None), (ONES, None, ONES), [0, None]),
            ((None, None, 0), (None, ONES, ONES), [None, 0]),
            ((0, (None, 1)), (None, (ONES, ONES)), [None, 1]),
            (None, (None, ONES), [None]),
        ],
    )
    def test_axes(self, axes: Any, value: Any, want: list[int | None]) -> None:
        assert leaf_axes("t", axes, value) == want


class TestFailureReports:
    """What is said of the arguments of lanes that failed."""

    @pytest.mark.parametrize("options", [{}, {"strategy": "local"}, {"max_depth": None, "max_steps": 5}])
    def test_keys_have_no_text(self, options: dict[str, Any]) -> None:
        @pcbatch.batch(max_depth=3)
        def walk(n, key):
            if n <= 0:
                return jax.random.uniform(key)
            return walk(n - 1, jax.random.fold_in(key, n)) + 1.0

        with pytest.raises(BatchRuntimeError, match="n=9"):
            walk.with_options(**options)(jnp.array([2, 9]), jax.random.split(jax.random.key(0), 2))

    @pytest.mark.parametrize("size", [2, 4])
    def test_shared_leaves_are_no_lane_values(self, size: int) -> None:
        @pcbatch.batch(in_axes=(0, {"h": 0, "w": None}), max_depth=2)
        def deep(n, p):
            if n <= 0:
                return p["w"].sum() + p["h"]
            return deep(n - 1, p) + 1

        with pytest.raises(BatchRuntimeError) as info:
            deep(jnp.array([0, 1, 5]), {"h": jnp.array([1.0, 2.0, 3.0]), "w": jnp.arange(size) * 1.0})
        assert "p.h=3.0" in str(info.value) and "p.w" not in str(info.value)


class TestRange:
    """The numbers of a range are Python's: they do not wrap where the type of a bound would."""

    def test_narrow_bounds(self) -> None:
        def ramp(a, b):
            t = 0
            for i in range(a, b):
                t += i * 100
            return t

        assert_as_plain(ramp, jnp.array([1, 2, 3], jnp.int8), jnp.array([5, 6, 7], jnp.int8))

    def test_past_the_end_of_the_type(self) -> None:
        def edge(a):
            t = 0
            for i in range(a, 127, 50):
                t += i
            return t

        assert_as_plain(edge, jnp.array([1, 100, -128], jnp.int8))

    @pytest.mark.parametrize("dtype", [jnp.uint8, jnp.uint32])
    def test_down_from_unsigned(self, dtype: Any) -> None:
        def countdown(n):
            t = 0
            for i in range(n, -1, -1):
                t += i - 3
            return t

        assert_as_plain(countdown, jnp.array([1, 2, 3], dtype))


def too_large_for_int32(n):
    k = 3_000_000_000
    while n > 0:
        k = k // 2
        n -= 1
    return k


def negative_in_unsigned(n):
    found = -1
    if n > 1:
        found = n.astype(jnp.uint32)
    return found


def default_too_large(n, k=1000):
    if n > 1:
        k = n.astype(jnp.int8)
    return k


@pytest.mark.parametrize("fn", [too_large_for_int32, negative_in_unsigned, default_too_large])
def test_numbers_that_do_not_fit_are_refused(fn: Callable[..., Any]) -> None:
    with pytest.raises(CompileError) as info:
        pcbatch.batch(fn)(jnp.array([1, 2]))
    assert [d.code for d in info.value.diagnostics] == ["PCB312"]


def annotated_only(x):
    y: int
    return y  # noqa: F821


def assigned_after_return(x):
    return y  # noqa: F821
    y = 3


def assigned_in_a_dead_branch(x):
    if False:
        y = 1
    z = y
    return x + z


@pytest.mark.parametrize("fn", [annotated_only, assigned_after_return, assigned_in_a_dead_branch])
@pytest.mark.parametrize("typed", [True, False])
def test_reads_that_nothing_can_reach_an_assignment_of(fn: Callable[..., Any], typed: bool) -> None:
    batched = pcbatch.batch(fn)
    with pytest.raises(CompileError) as info:
        batched(jnp.array([1, 2])) if typed else dump(batched, "opt", None, 8)
    assert info.value.diagnostics[0].code == "PCB201"


class TestOptions:
    """`with_options` checks what `batch` checks."""

    def test_a_single_static_name(self) -> None:
        def scale(m, mode):
            return m * (2 if mode == "double" else 1)

        batched = pcbatch.batch(scale).with_options(static_argnames="mode")
        assert batched(jnp.array([1, 2]), "double").tolist() == [2, 4]

    @pytest.mark.parametrize("changes", [{"foo": 1}, {"static_argnames": 3}, {"static_argnames": "q"}])
    def test_what_is_refused(self, changes: dict[str, Any]) -> None:
        with pytest.raises(UsageError):
            pcbatch.batch(lambda x: x).with_options(**changes)

    @pytest.mark.parametrize("dtype", [object, "datetime64[s]", "U3"])
    def test_dtypes_that_jax_lacks(self, dtype: Any) -> None:
        with pytest.raises(UsageError) as info:
            pcbatch.batch(lambda x: x)(np.zeros(2, dtype))
        assert info.value.diagnostics[0].code == "PCB405"


@pytest.mark.full_only
def test_a_long_expression_in_the_file(tmp_path: Any) -> None:
    text = "def long(x):\n    return " + " + ".join(["x"] * 600) + "\n\ndef short(x):\n    return x\n"
    text += "\n\ndef down(n):\n    if n <= 0:\n        return n\n    return down(n - 1)" + " + n" * 600 + "\n"
    file = tmp_path / "long_expression.py"
    file.write_text(text)
    space: dict[str, Any] = {}
    exec(compile(text, str(file), "exec"), space)
    assert pcbatch.batch(space["short"])(jnp.array([1, 2])).tolist() == [1, 2]
    assert pcbatch.batch(space["long"])(jnp.array([1, 2])).tolist() == [600, 1200]
    assert pcbatch.batch(space["down"])(jnp.array([1, 2])).tolist() == [600, 1800]


class TestPlainOnRows:
    """`.plain` has the arrays of JAX, as lanes do, whatever it is given."""

    def test_rows_of_numpy(self) -> None:
        @pcbatch.batch
        def first_to_zero(xs, table):
            return xs.at[0].set(0.0) + table["a"].at[1].add(1.0), xs[7]

        row, table = np.ones(3), {"a": np.arange(3.0)}
        changed, last = first_to_zero.plain(row, table=table)
        assert changed.tolist() == [0.0, 3.0, 3.0] and changed.dtype == np.float32 and float(last) == 1.0
        assert row.tolist() == [1.0, 1.0, 1.0] and isinstance(table["a"], np.ndarray)

    def test_what_is_no_array_stays(self) -> None:
        @pcbatch.batch(static_argnames="how")
        def given(n, how, names=None):
            return n, how, names

        names, key = np.array(["a"]), jax.random.key(0)
        assert given.plain(3, "sum", names) == (3, "sum", names)
        assert given.plain(np.int8(3), key)[1] is key and type(given.plain(np.int8(3), key)[0]) is np.int8
