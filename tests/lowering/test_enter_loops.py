"""After a loop that is known to run, what its body assigns has a value; after another it may have none."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import jax.numpy as jnp
import numpy as np
import pytest

import pcbatch
from pcbatch.api.dump import dump
from pcbatch.compiler.pipeline import stages
from pcbatch.errors import CompileError
from tests.programs.compare import assert_same_bits

MOST = 3
NONE = 0
N = np.arange(5, dtype=np.int32)
XS = np.arange(20, dtype=np.int32).reshape(5, 4)


def constant_bound(n: Any) -> Any:
    for t in range(MOST):
        if n > t + 2:
            break
    return t * 10 + n


def bounds_and_step(n: Any) -> Any:
    first = MOST + 1
    for t in range(first, -MOST, -2):
        if t == n:
            continue
        last = t
        if n == 4:
            return last
    return t


def shape(xs: Any) -> Any:
    for i in range(len(xs)):
        if xs[i] > 9:
            break
    else:
        i = -1
    return i


def rows(xs: Any) -> Any:
    for x in xs:
        double = 2 * x
    return double + x


def tuples(n: Any) -> Any:
    for k, c in enumerate((5, 7)):
        n = n * c + k
    return n + c + k


def nested(n: Any) -> Any:
    total = 0
    for i in range(n):
        for j in range(MOST):
            for k in range(2, 2 + MOST):
                if n == k:
                    break
            total += k
        total += j + i
    return total


def counted(n: Any) -> Any:
    i = 0
    while i < MOST:
        last = i * n
        i += 1
    return last


def helper(n: Any, most: Any) -> Any:
    for t in range(most):
        if t == n:
            break
    return t


ACCEPTED = {
    constant_bound: N,
    bounds_and_step: N,
    shape: XS,
    rows: XS,
    tuples: N,
    nested: N,
    counted: N,
}


@pytest.mark.parametrize("fn", ACCEPTED, ids=lambda fn: str(fn.__name__))
def test_bounds_that_are_known(fn: Callable[..., Any]) -> None:
    """Checked in the program that the front end's becomes, and run."""
    batched = pcbatch.batch(fn)
    given = ACCEPTED[fn]
    assert_same_bits(batched(given), jnp.stack([jnp.asarray(batched.plain(x)) for x in given]))


@pytest.mark.parametrize("strategy", ["pc", "local"])
def test_a_static_argument(strategy: str) -> None:
    batched = pcbatch.batch(helper, static_argnames=("most",), strategy=strategy)
    assert batched(N, 3).tolist() == [helper(n, 3) for n in N]
    with pytest.raises(CompileError, match="PCB201"):
        batched(N, 0)


def data(n: Any) -> Any:
    for t in range(n):
        pass
    return t


def data_from_one(n: Any) -> Any:
    for t in range(1, n):
        pass
    return t


def two_values(n: Any) -> Any:
    most = MOST
    most = most - MOST
    for t in range(most):
        n += 1
    return n + t


def empty(n: Any) -> Any:
    for t in range(NONE):
        n += 1
    return n + t


def backwards(n: Any) -> Any:
    for t in range(MOST, 0):
        n += 1
    return n + t


def changed_before(n: Any) -> Any:
    most = MOST
    if n > 2:
        most = 0
    for t in range(most):
        n += 1
    return n + t


def assigned_after_continue(n: Any) -> Any:
    for t in range(MOST):
        if n > t:
            continue
        last = t
    return last


def assigned_after_break(n: Any) -> Any:
    for t in range(MOST):
        if n > t:
            break
        last = t
    return last


def second_time_round(n: Any) -> Any:
    i = 0
    while n > 0:
        while i < MOST:
            last = n
            i += 1
        n -= 1
    return last


def no_rows(xs: Any) -> Any:
    for x in xs[:0]:
        pass
    return x


REFUSED = [empty, backwards, no_rows, two_values]
TESTED = [data, data_from_one, changed_before, assigned_after_continue, assigned_after_break, second_time_round]


@pytest.mark.parametrize("fn", REFUSED, ids=lambda fn: str(fn.__name__))
def test_a_loop_that_never_runs(fn: Callable[..., Any]) -> None:
    with pytest.raises(CompileError, match="PCB201"):
        stages(pcbatch.batch(fn), (XS if fn is no_rows else N,))


@pytest.mark.parametrize("fn", TESTED, ids=lambda fn: str(fn.__name__))
def test_others_fail_in_the_lanes_that_do_not_run_them(fn: Callable[..., Any]) -> None:
    result = pcbatch.batch(fn).run(N)
    failed = 0
    for k, n in enumerate(N):
        try:
            expected = fn(n)
        except UnboundLocalError:
            failed += 1
            assert result.status[k] == pcbatch.Status.ERROR
            continue
        assert result.status[k] == pcbatch.Status.OK
        assert result.value[k] == expected
    assert 0 < failed < len(N)


def test_without_types() -> None:
    """A module's constant is known there too."""
    assert "func" in dump(pcbatch.batch(constant_bound), "cfg", None, 1)
    assert "UnboundLocalError" in dump(pcbatch.batch(data), "cfg", None, 1)
