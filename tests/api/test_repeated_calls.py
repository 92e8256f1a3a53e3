"""Calls that repeat an earlier one with other arrays: what is kept of it never leads to another result."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import pcbatch
from tests.learning import random_policies


def plans(f: Any) -> int:
    """How many calls a function remembers."""
    return len(f._programs.repeated.plans)


def test_a_repeated_call_is_not_prepared_again(monkeypatch: pytest.MonkeyPatch) -> None:
    @pcbatch.batch(in_axes=(None, 0))
    def f(w, x):
        return w["a"] * x + w["b"]

    w = {"a": jnp.float32(2.0), "b": jnp.float32(1.0)}
    first = f(w, jnp.arange(3.0))
    assert plans(f) == 1
    monkeypatch.setattr("pcbatch.api.programs.prepare", None)
    again = f({"a": jnp.float32(3.0), "b": jnp.float32(0.0)}, jnp.arange(3.0))
    np.testing.assert_array_equal(first, [1.0, 3.0, 5.0])
    np.testing.assert_array_equal(again, [0.0, 3.0, 6.0])


def test_arrays_of_numpy_are_those_of_jax(monkeypatch: pytest.MonkeyPatch) -> None:
    @pcbatch.batch(in_axes=(0, None))
    def f(x, n):
        while x < n:
            x = x + 1
        return x

    xs = np.array([0.5, 7.0], np.float32)
    np.testing.assert_array_equal(f(xs, np.float32(3)), [3.5, 7.0])
    monkeypatch.setattr("pcbatch.api.programs.prepare", None)
    xs[0] = 6.0
    kept = f(xs, np.float32(8))
    xs[:] = 0.0
    np.testing.assert_array_equal(kept, [8.0, 8.0])
    np.testing.assert_array_equal(f(jnp.asarray(xs), jnp.float32(2)), [2.0, 2.0])
    assert plans(f) == 1


@pytest.mark.parametrize("x", [np.array(["a"]), np.array([None]), np.array(["2020-01-01"], "datetime64[D]")])
def test_what_jax_has_no_dtype_for_is_refused_every_time(x: Any) -> None:
    f = pcbatch.batch(lambda x: x)
    for _ in range(2):
        with pytest.raises(pcbatch.UsageError):
            f(x)


def test_types_are_looked_at() -> None:
    f = pcbatch.batch(lambda x: x + 1)
    some = jnp.arange(3)
    for x in (some, jnp.arange(3.0), jnp.arange(4), some.astype(jnp.int8), np.arange(3), some):
        assert f(x).dtype == (jnp.asarray(x) + 1).dtype
        np.testing.assert_array_equal(f(x), x + 1)
    assert plans(f) == 4


def test_arrays_that_were_one_may_be_two_later() -> None:
    f = pcbatch.batch(lambda x, y: x - y)
    x, y = jnp.array([5, 7]), jnp.array([1, 2])
    np.testing.assert_array_equal(f(x, x), [0, 0])
    np.testing.assert_array_equal(f(x, y), [4, 5])
    np.testing.assert_array_equal(f(y, y), [0, 0])
    np.testing.assert_array_equal(f(y, x), [-4, -5])


def test_names_and_order_of_arguments() -> None:
    f = pcbatch.batch(lambda x, y: x - y)
    x, y = jnp.array([5]), jnp.array([1])
    for _ in range(2):
        assert (f(x, y)[0], f(y=x, x=y)[0], f(x=y, y=x)[0], f(x, y=y)[0]) == (4, -4, -4, 4)


def test_the_order_of_a_dict() -> None:
    @pcbatch.batch
    def f(table):
        out = 0
        for value in table.values():
            out = 10 * out + value
        return out

    one, two = jnp.array([1]), jnp.array([2])
    for _ in range(2):
        assert (f({"a": one, "b": two})[0], f({"b": two, "a": one})[0]) == (12, 21)


def test_a_default_that_is_changed() -> None:
    scale = [2]

    @pcbatch.batch
    def f(x, by=scale):
        return x * by[0]

    x = jnp.array([3])
    assert (f(x)[0], f(x)[0]) == (6, 6)
    scale[0] = 5
    assert f(x)[0] == pcbatch.batch(f.fn)(x)[0] == 15


def test_calls_in_a_trace_after_calls_outside() -> None:
    f = pcbatch.batch(lambda x: x * x)
    x = jnp.array([1.0, 3.0])
    np.testing.assert_array_equal(f(x), [1, 9])
    np.testing.assert_array_equal(jax.jit(f)(x), [1, 9])
    np.testing.assert_array_equal(jax.jit(lambda: f(x))(), [1, 9])
    np.testing.assert_array_equal(jax.grad(lambda x: f(x).sum())(x), [2, 6])
    np.testing.assert_array_equal(f(x), [1, 9])


@dataclass
class Node:
    """A list as objects."""

    value: int
    next: Node | None = None


def test_packed_objects_share_a_table_or_have_two() -> None:
    @pcbatch.batch
    def f(a, b):
        return a.value - b.value

    one = pcbatch.pack([Node(1), Node(2), Node(3)])
    other = pcbatch.pack([Node(10), Node(20), Node(30)])
    for _ in range(2):
        np.testing.assert_array_equal(f(one, one), [0, 0, 0])
        np.testing.assert_array_equal(f(one, other), [-9, -18, -27])
        np.testing.assert_array_equal(f(other, one), [9, 18, 27])
        np.testing.assert_array_equal(f(one[::-1], one), [2, 0, -2])


def test_failures_name_the_arguments_of_the_call_itself() -> None:
    @pcbatch.batch
    def f(x):
        assert x > 0
        return x

    assert f(jnp.array([4]))[0] == 4
    with pytest.raises(pcbatch.BatchRuntimeError, match="-7"):
        f(jnp.array([-7]))


def test_methods_have_their_objects() -> None:
    @dataclass(frozen=True)
    class Line:
        slope: Any

        @pcbatch.batch
        def at(self, x):
            return self.slope * x

    x = jnp.array([2.0])
    for slope in (1.0, 3.0, 1.0):
        assert Line(slope).at(x)[0] == 2 * slope


# What a plan must not outlive


def told(call: Any) -> Any:
    """The outcome of a call: leaves with types and devices, or the exception."""
    try:
        found = jax.tree.leaves(call())
    except Exception as error:
        return type(error).__name__, str(error).splitlines()[0]
    return [(np.asarray(x).tolist(), jax.typeof(x), x.sharding.device_set, x.committed) for x in found]


def assert_not_stale(f: Any, first: Any, call: Any) -> Any:
    """A call gives what it gives where no call is remembered, and so do those before it. Its outcome is returned."""
    before = told(first)
    assert plans(f) >= 1, "the first call is remembered"
    found = told(call)
    assert told(first) == before
    f._programs.repeated.plans.clear()
    assert found == told(call)
    return found


def two(x, y):
    return x * 2.0 + y


X, Y = jnp.arange(3.0), jnp.ones(3)


@pytest.mark.parametrize("where", ["both", "one", "uncommitted", "default", "mesh", "explicit mesh", "split", "named"])
@pytest.mark.filterwarnings("ignore::DeprecationWarning")
def test_arrays_on_other_devices(where: str) -> None:
    f = pcbatch.batch(two)
    here, there = jax.devices()[:2]
    types = jax.sharding.AxisType
    meshes = [jax.make_mesh((2,), ("d",), axis_types=(kind,)) for kind in (types.Auto, types.Explicit)]
    one = jax.NamedSharding(jax.make_mesh((1,), ("d",)), jax.P("d"))

    def with_setting(setting: Any) -> Any:
        with setting:
            return f(X, Y)

    calls = {
        "both": lambda: f(jax.device_put(X, there), jax.device_put(Y, there)),
        "one": lambda: f(jax.device_put(X, here), jax.device_put(Y, there)),
        "uncommitted": lambda: f(X, jax.device_put(Y, there)),
        "default": lambda: with_setting(jax.default_device(there)),
        "mesh": lambda: with_setting(jax.set_mesh(meshes[0])),
        "explicit mesh": lambda: with_setting(jax.set_mesh(meshes[1])),
        "split": lambda: f(jnp.arange(3.0), jnp.ones(3), devices=2),
        "named": lambda: f(jax.device_put(X, one), Y),
    }
    assert_not_stale(f, lambda: f(X, Y), calls[where])


def test_settings_of_jax() -> None:
    def product(x, w):
        return w @ x, jnp.arange(3)

    f = pcbatch.batch(product, in_axes=(0, None))
    x, w = jnp.full((2, 3), 1 / 3), jnp.full((3, 3), 1 / 7)
    settings: dict[str, Any] = {
        "x64": lambda: jax.enable_x64(True),
        "precision": lambda: jax.default_matmul_precision("highest"),
        "dtype promotion": lambda: jax.numpy_dtype_promotion("standard"),
        "rank promotion": lambda: jax.numpy_rank_promotion("allow"),
    }
    for setting in settings.values():

        def inside(setting: Any = setting) -> Any:
            with setting():
                return f(x, w)

        count = len(f._programs.cache)
        assert_not_stale(f, lambda: f(x, w), inside)
        assert len(f._programs.cache) > count, "another program"


def test_weak_types_are_types() -> None:
    """A number of Python's kind takes the dtype of what it is added to."""
    f = pcbatch.batch(lambda x: x + jnp.float16(1))
    with jax.numpy_dtype_promotion("standard"):
        strong, weak = jnp.arange(3.0), jax.lax.full((3,), 2.0)
        assert weak.weak_type and not strong.weak_type
        dtypes = [f(x).dtype for x in (strong, weak, strong, weak)]
        assert dtypes == [(x + jnp.float16(1)).dtype for x in (strong, weak, strong, weak)]


def test_an_array_that_is_donated_twice() -> None:
    f = pcbatch.batch(lambda x, y: (x * 2, y + x), donate_argnames=("x",))
    z = np.arange(3.0, dtype=np.float32)

    def same() -> Any:
        array = jnp.asarray(z)
        return f(array, array)

    assert_not_stale(f, lambda: f(jnp.asarray(z), jnp.asarray(z)), same)

    def deleted() -> Any:
        array = jnp.asarray(z)
        array.delete()
        return f(array, jnp.asarray(z))

    assert_not_stale(f, lambda: f(jnp.asarray(z), jnp.asarray(z)), deleted)


def test_static_arguments_are_looked_at() -> None:
    f = pcbatch.batch(lambda x, by: x * len(by), static_argnames=("by",))
    for _ in range(2):
        assert f(X, (1, 2, 3))[1] == 3
        assert f(X, "ab")[1] == 2
    assert plans(f) == 0
    shared = pcbatch.batch(lambda x, by: x * by["n"] if by["how"] == "times" else x + by["n"], in_axes=(0, None))
    n = jnp.float32(3)
    for _ in range(2):
        assert shared(X, {"how": "times", "n": n}).tolist() == [0, 3, 6]
        assert shared(X, {"how": "plus", "n": n}).tolist() == [3, 4, 5]


def test_a_list_that_is_changed_between_calls() -> None:
    f = pcbatch.batch(lambda xs: sum(xs[1:], xs[0]))
    xs = [X, Y]
    assert f(xs).tolist() == [1, 2, 3]
    xs[0] = Y
    assert f(xs).tolist() == [2, 2, 2]
    xs.append(X)
    assert f(xs).tolist() == [2, 3, 4]
    del xs[1:]
    assert f(xs).tolist() == [1, 1, 1]


def test_what_is_read_when_a_program_is_compiled() -> None:
    """Globals, closures and defaults: a repeated call gives what a call gives that is not remembered."""
    factor = 2.0

    def f_(x, y, by=1.0):
        return x * factor + y * by

    f = pcbatch.batch(f_)
    assert f(X, Y).tolist() == [1, 3, 5]
    f_.__defaults__ = (10.0,)
    assert f(X, Y).tolist() == [10, 12, 14]
    by = jnp.full(3, 4.0)
    assert f(X, Y, by).tolist() == [4, 6, 8]
    factor = 3.0
    found = told(lambda: f(X, Y, by))
    f._programs.repeated.plans.clear()
    assert told(lambda: f(X, Y, by)) == found
    assert pcbatch.batch(f_)(X, Y, by).tolist() == [4, 7, 10]


def test_code_that_is_reloaded() -> None:
    def f_(x):
        return x + 1.0

    def other(x):
        return x - 1.0

    f = pcbatch.batch(f_)
    assert f(X).tolist() == [1, 2, 3]
    f_.__code__ = other.__code__
    assert f(X).tolist() == [-1, 0, 1]


def test_options_have_calls_of_their_own() -> None:
    def endless(x):
        while x > 0.0:
            x = x + 1.0
        return x

    f = pcbatch.batch(endless, max_steps=50)
    assert f.run(X).status.tolist() == f.run(X).status.tolist()
    more = f.with_options(max_steps=60, on_failure="ignore")
    assert plans(more) == 0 and plans(f) == 1
    assert more.run(X - 9).status.tolist() == [0, 0, 0]


def test_learned_schedules_have_calls_of_their_own() -> None:
    def f_(x, n):
        while n > 0:
            x, n = jnp.sin(x), n - 1
        return x

    f, args = pcbatch.batch(f_), (X, jnp.array([3, 1, 2]))
    want = f(*args)
    fast = f.with_options(plan=pcbatch.Plan(schedule=random_policies.of_call(f, args, 1)))
    assert plans(fast) == 0
    for _ in range(2):
        np.testing.assert_allclose(fast(*args), want, rtol=1e-6)
    assert fast.explain_schedule(*args).policy == "learned" != f.explain_schedule(*args).policy
