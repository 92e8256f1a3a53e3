"""A variable that a path has not assigned: the lane fails with UnboundLocalError where Python does."""

from __future__ import annotations

import contextlib

import jax.numpy as jnp
import numpy as np
import pytest

import pcbatch
from pcbatch.errors import BatchRuntimeError, CompileError

MESSAGE = "UnboundLocalError`: cannot access local variable '{}' where it is not associated with a value"


def after_loop(n):
    for i in range(n):
        pass
    return i


def one_branch(n):
    if n > 2:
        y = n * n
    z = n + 1
    return y + z


def in_a_loop(n):
    while n > 0:
        n -= 2
        if n == 5:
            x = n
    return x


def removed_from_nothing(n):
    s = set()
    for i in range(n):
        if i > 1:
            break
    else:
        try:
            s.remove(i)
        except KeyError:
            return -1
    return n


@pytest.mark.parametrize(
    ("fn", "name", "good", "bad"),
    [
        (after_loop, "i", [1, 4], 0),
        (one_branch, "y", [3, 9], 2),
        (in_a_loop, "x", [7, 9], 8),
        (removed_from_nothing, "i", [1, 2, 9], 0),
    ],
)
def test_lanes_fail_where_python_does(fn, name, good, bad) -> None:
    batched = pcbatch.batch(fn)
    np.testing.assert_array_equal(batched(jnp.array(good)), [fn(n) for n in good])
    with pytest.raises(UnboundLocalError):
        fn(bad)
    with pytest.raises(BatchRuntimeError) as info:
        batched(jnp.array([*good, bad]))
    assert MESSAGE.format(name) in str(info.value)
    assert f"1 of {len(good) + 1} lanes" in str(info.value)


def test_a_variable_that_no_path_assigns_is_refused() -> None:
    def fn(n):
        total = total + n  # noqa: F821
        return total

    with pytest.raises(CompileError, match="PCB201"):
        pcbatch.batch(fn)(jnp.array([1]))


def test_a_failure_known_while_compiling_shows_no_value_of_the_lane() -> None:
    def fn(n):
        d = {}
        if n > 2:
            del d[n]
        return n

    with pytest.raises(BatchRuntimeError) as info:
        pcbatch.batch(fn)(jnp.array([1, 4]))
    assert "KeyError" in str(info.value)
    assert "Tracer" not in str(info.value)


def test_what_is_always_assigned_gets_no_flag() -> None:
    def fn(n):
        for _ in range(3):
            y = n
        return y

    program = pcbatch.batch(fn).lower(jnp.array([1])).stages.cfg
    assert not any("is_set" in name for name in program.functions[0].types)


def after_no_trip(n):
    for i in range(n):
        last = i
    try:
        return last
    except UnboundLocalError:
        return -1


def by_its_base(n):
    if n > 1:
        v = n
    try:
        w = v + 1
    except NameError:
        w = -5
    return w


def in_a_loop_with_finally(n):
    out = 0
    for k in range(3):
        try:
            if n > k:
                z = k
            out += z * 2 + 10
        except Exception:
            out -= 1
        finally:
            out *= 2
    return out


def one_way(n):
    if n > 2:
        q = n
    return q


def in_a_callee(n):
    try:
        return one_way(n)
    except UnboundLocalError:
        return -7


def in_a_handler(n):
    try:
        xs = [1, 2]
        y = xs[n]
        z = 5
    except IndexError:
        try:
            return z
        except NameError:
            return -3
    return y + z


def of_what_is_changed(n):
    if n > 1:
        d = {1: 5}
    try:
        d[n] = 3
        return sum(d.values())
    except KeyError:
        return -2
    except UnboundLocalError as e:
        return -4


def past_finally(n):
    try:
        if n > 1:
            v = 1
        return v
    finally:
        n = 3


def beside_a_division(n):
    if n > 1:
        v = 1
    try:
        return n // n * v if n else v
    except ZeroDivisionError:
        return -9


def by_the_trip_before(n):
    acc = []
    for i in range(3):
        try:
            acc.append(w)
        except NameError:
            acc.append(-1)
        if i == n:
            w = i
    return acc


def suppressed(n):
    r = 0
    if n > 1:
        v = n
    with contextlib.suppress(NameError):
        r = v
    return r


CAUGHT = [
    after_no_trip, by_its_base, in_a_loop_with_finally, in_a_callee, in_a_handler, of_what_is_changed, past_finally,
    beside_a_division, by_the_trip_before, suppressed,
]  # fmt: skip


@pytest.mark.parametrize("fn", CAUGHT, ids=lambda fn: fn.__name__)
def test_handlers_catch_it(fn) -> None:
    ns = [0, 1, 2, 3, 4]
    result = pcbatch.batch(fn).run(jnp.array(ns))
    for lane, n in enumerate(ns):
        try:
            expected = fn(n)
        except UnboundLocalError:
            assert result.status[lane] == pcbatch.Status.ERROR
            continue
        assert result.status[lane] == pcbatch.Status.OK
        assert np.asarray(result.value[lane]).tolist() == expected
