"""Sums of calls that are checked: tasks add them up in any order, and none that has left its dtype is a result."""

from __future__ import annotations

from collections.abc import Callable

import jax
import numpy as np
import pytest

import pcbatch
from pcbatch import Status
from pcbatch.ir.text.printer import print_program
from pcbatch.lowering.tasks import pipeline
from pcbatch.runtime.tasks import TaskExecutable, TaskOptions

LOW, HIGH = -(2**31), 2**31 - 1
BASES = [0, 1, -5, 2**20, 2**24, -(2**24), 2**27 + 3, 2**30 - 1, 2**30, -(2**30), HIGH, LOW, 123456789, -987654321]


def double(n, base):
    if n == 0:
        return base
    return double(n - 1, base) + double(n - 1, base)


def cancel(n, base):
    if n == 0:
        return base // 2
    return cancel(n - 1, base) + cancel(n - 1, -(base // 2))


def grow(n, k, base):
    if n == 0:
        return base
    total = 0
    for i in range(k):
        total += grow(n - 1, k, base - i)
    return total


def examples(fn: Callable[..., int]) -> list[tuple[int, ...]]:
    if fn is grow:
        return [(n, k, b) for n in range(4) for k in range(4) for b in BASES if b != LOW]
    return [(n, b) for n in range(8) for b in BASES]


@pytest.mark.parametrize("fn", [double, cancel, grow])
def test_a_number_is_right_or_its_lane_says_so(fn: Callable[..., int]) -> None:
    lanes = examples(fn)
    result = pcbatch.batch(fn).run(*np.array(lanes, np.int32).T)
    for lane, status, value in zip(lanes, result.status.tolist(), np.asarray(result.value).tolist(), strict=True):
        want = fn(*lane)
        if status == Status.OK:
            assert value == want, lane
        else:
            assert status == Status.LIMIT
            assert fn is cancel or not LOW <= want <= HIGH, lane  # Python's integers on the way do not fit


@pytest.mark.share(2)
@pytest.mark.parametrize("options", [{"width": 1, "frames": 3}, {"width": 4}, {"width": 64}, {}], ids=str)
def test_tasks_finish_small_sums_alone(options: dict[str, int]) -> None:
    lanes = examples(double)
    columns = np.array(lanes, np.int32).T
    program = pipeline.run(pcbatch.batch(double).lower(*columns).stages.inlined_cfg)
    assert program is not None
    assert program.exact
    assert "exact sums (double)" in print_program(program)
    outcome = TaskExecutable(program, TaskOptions(**options)).run(
        dict(zip(program.params, columns, strict=True)), len(lanes)
    )
    (values,) = outcome.raw.values
    for lane, unfinished, value in zip(lanes, outcome.unfinished.tolist(), np.asarray(values).tolist(), strict=True):
        want = double(*lane)
        assert unfinished or value == want, lane
        assert unfinished == (abs(want) >= 2**30 and lane[0] > 0) or abs(want) > 2**22, lane


def test_sums_over_devices() -> None:
    f = pcbatch.batch(grow, plan=pcbatch.Plan(fork="always"))
    for lane in ((5, 4, 2**20 - 9), (5, 4, 2**22), (6, 3, -(2**21))):
        want = grow(*lane)
        result = f.run(*(np.array([x], np.int32) for x in lane), devices=jax.devices()[:2])
        fits = LOW <= want <= HIGH
        assert result.status.tolist() == [Status.OK if fits else Status.LIMIT]
        assert not fits or result.value.tolist() == [want]


def test_sums_that_wrap_when_asked_are_not_checked() -> None:
    columns = np.array(examples(double), np.int32).T
    program = pipeline.run(pcbatch.batch(double, numbers="jax").lower(*columns).stages.inlined_cfg)
    assert program is not None
    assert not program.exact
