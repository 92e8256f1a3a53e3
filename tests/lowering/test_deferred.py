"""Operations of loops on results of calls, done for several results together, in Python's order."""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import pcbatch
from pcbatch.ir.cfg import CfgProgram
from pcbatch.lowering.tasks import deferred, pipeline
from tests.oracles.interpret_cfg import interpret_cfg
from tests.oracles.interpret_tasks import interpret_tasks
from tests.oracles.numpy_jaxpr import on_numpy
from tests.programs.compare import assert_lanes_equal


def total(n):
    """More rounds than rows; the order of the terms decides the last digits."""
    if n <= 0:
        return 0.1
    t = 1000.0
    for k in range(20 if n == 2 else n):
        t += total(n - 1 - k) * 0.3
    return t * 0.01


def leaves_early(n):
    """Ways out of the loop, past some rounds, and a variable of an outer loop."""
    if n <= 0:
        return 1.0
    best = -1.0
    for j in range(2):
        for k in range(n):
            if k == 3:
                return best
            if k == j:
                continue
            best = max(best, leaves_early(n - 1 - k) - j)
        if n == 2:
            break
    return best + 0.5


def halved(n):
    """The variable is also changed otherwise, after a loop and before it."""
    if n <= 0:
        return 1.0
    t = halved(n - 1)
    for k in range(n - 1):
        t = t * 0.5 + halved(n - 2 - k)
    t = t - 1.0
    for k in range(n - 1):
        t = t - halved(n - 2 - k) * 0.25
    return t


def looked_at(n):
    """The sum decides whether the loop goes on, so each round waits."""
    if n <= 0:
        return 1.0
    t = 0.0
    k = 0
    while t < 3.0 and k < n:
        t += looked_at(n - 1 - k)
        k += 1
    return t


def told(n):
    """So it does where another operation of the loop reads the sum."""
    if n <= 0:
        return 1.0
    t, most = 0.0, 0.0
    for k in range(n):
        t += told(n - 1 - k)
        most = most + t
    return most


def weighed(n):
    """And where the operation reads what another round changes."""
    if n <= 0:
        return 1.0
    t, w = 0.0, 1.0
    for k in range(n):
        t += weighed(n - 1 - k) * w
        w = w * 0.5
    return t


def cfg_of(fn: Any) -> CfgProgram:
    example: Any = jax.ShapeDtypeStruct((1,), "int32")
    return pcbatch.batch(fn, plan=pcbatch.Plan(fork="never")).lower(example).stages.inlined_cfg


@pytest.mark.share(3)
@pytest.mark.parametrize("fn", [total, leaves_early, halved])
@np.errstate(all="ignore")
def test_the_order_is_that_of_python(fn: Any) -> None:
    """To the last bit of what the CFG gives, in any order of tasks, which no pass but this one makes possible."""
    cfg = cfg_of(fn)
    assert pipeline.run(cfg, defers=False) is None
    tasks = pipeline.run(cfg)
    assert tasks is not None
    for n in (0, 1, 2, 3, 5):
        (want,), _ = interpret_cfg(on_numpy(cfg), [np.int32(n)])
        assert float(want) == pytest.approx(fn(n), rel=1e-5)
        for seed in (None, 1, 2):
            assert float(interpret_tasks(on_numpy(tasks), [np.int32(n)], seed=seed)[0][0]) == float(want), (n, seed)


def inverted(n):
    """And of what is infinite for a row that holds nothing."""
    if n <= 0:
        return 1.0
    t = 0.0
    for k in range(n):
        t += 1.0 / inverted(n - 1 - k)
    return t


@pytest.mark.share(2)
@pytest.mark.parametrize("fn", [looked_at, told, weighed, inverted])
def test_what_cannot_wait_stays(fn: Any) -> None:
    cfg = cfg_of(fn)
    assert deferred.run(cfg) == cfg


def test_by_tasks_and_for_few_examples_only() -> None:
    values = jnp.array([3, 0, 2, 5, 1], jnp.int32)
    assert_lanes_equal(
        pcbatch.batch(total, plan=pcbatch.Plan(fork="always"))(values), [total(int(n)) for n in values], rtol=1e-5
    )
    told = pcbatch.batch(total).explain_schedule(jax.ShapeDtypeStruct((5,), "int32")).calls
    assert "side by side" in told and "up to 4 examples" in told


def test_large_results_are_not_kept() -> None:
    def rows(x, n):
        if n <= 0:
            return x
        t = x * 0.0
        for k in range(n):
            t = t + rows(x, n - 1 - k)
        return t

    x, n = jax.ShapeDtypeStruct((4, 3), "float32"), jax.ShapeDtypeStruct((4,), "int32")
    assert "costs more than is gained" in pcbatch.batch(rows).explain_schedule(x, n).calls
