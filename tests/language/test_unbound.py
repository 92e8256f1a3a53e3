"""A variable that a path has not assigned: the lane fails with UnboundLocalError where Python does."""

from __future__ import annotations

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
