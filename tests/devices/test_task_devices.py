"""Task programs on several devices: examples dealt out, and the tasks of few examples."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from typing import Any

import jax
import numpy as np
import pytest
from jax.sharding import Mesh

import pcbatch
from pcbatch.ir.tasks import TaskProgram
from pcbatch.runtime.tasks import TaskExecutable, TaskOptions, devices
from pcbatch.runtime.tasks.devices import DeviceTasks
from tests.programs.compare import assert_lanes_equal
from tests.runtime import task_programs as programs

Args = Mapping[str, Any]


def _arguments(make: Any, lanes: int) -> Args:
    """Arguments of a program of `task_programs`."""
    numbers = np.array([11, 3, 8], np.int32)[:lanes]
    if make in (programs.fib_frames, programs.fib_sums, programs.fib_plain_frames):
        return {"n": numbers}
    if make is programs.mutual:
        return {"n": numbers, "x": np.array([1, -2, 0.5], np.float32)[:lanes]}
    if make is programs.loop_into_frame:
        return {"n": np.array([6, 0, 4], np.int32)[:lanes], "width": np.array([3, 2, 4], np.int32)[:lanes]}
    if make is programs.queens_sums:
        board = np.array([63, 1, 15], np.int32)[:lanes]
        zero = np.zeros_like(board)
        return {"free": board, "columns": zero, "left": zero, "right": zero, "board": board}
    rng = np.random.default_rng(0)
    w, e = (rng.normal(size=shape).astype(np.float32) for shape in ((5, 5), (7, 5)))
    trees = [programs.tree(k, leaves) for k, leaves in enumerate([13, 1, 9][:lanes])]
    left, right, word = (np.stack(x) for x in zip(*trees, strict=True))
    return {"w": w, "e": e, "left": left, "right": right, "word": word}


SMALL: Args = {"width": 4, "frames": 9, "reserve": 2, "room": 8}


@pytest.mark.parametrize(
    ("make", "lanes", "options"),
    [
        (programs.fib_frames, 1, SMALL),
        (programs.fib_sums, 1, SMALL),
        (programs.fib_plain_frames, 3, {"width": 16}),
        (programs.loop_into_frame, 1, SMALL),
        (programs.loop_into_frame, 3, {"width": 16}),
        (programs.queens_sums, 3, SMALL),
        (programs.mutual, 3, SMALL),
        (programs.treelstm, 1, {"width": 16}),
        (programs.treelstm, 3, SMALL),
    ],
)
@pytest.mark.share(9, 0, 8)
def test_the_tasks_of_few_examples_are_dealt_out(
    make: Callable[[], TaskProgram], lanes: int, options: Args, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Several times in a run, since few tasks are enough; results are those of one device, to the bit."""
    monkeypatch.setattr(devices, "EACH", 3)
    rounds: list[int] = []
    monkeypatch.setattr(devices, "_next_part", partial(_counted, devices._next_part, rounds))
    tasks = TaskExecutable(make(), TaskOptions(**options))
    args = _arguments(make, lanes)
    wanted = tasks.run(args, lanes)
    several = DeviceTasks(tasks, Mesh(np.array(jax.devices()[:2]), ("d",)), _nowhere, _nowhere)
    for _ in range(2):
        found = several.run(args, lanes)
        assert not found.unfinished.any()
        for one, other in zip(found.raw.values, wanted.raw.values, strict=True):
            np.testing.assert_allclose(one, other, rtol=1e-5)
    assert rounds


def _counted(next_part: Any, rounds: list[int], *args: Any) -> Any:
    rounds.append(1)  # while it is traced
    return next_part(*args)


def _nowhere(*_: Any) -> Any:
    raise AssertionError("examples are not dealt out")


def pairs(n):
    """Two calls whose results meet."""
    if n <= 1:
        return 0.5
    return pairs(n - 2) * 0.5 + pairs(n - 1)


def picky(n):
    """Some raise."""
    if n < 0:
        raise ValueError("bad")
    if n == 0:
        return 1
    return picky(n - 2) + picky(n - 1)


@pytest.mark.parametrize("count", [2, 37])
def test_calls_on_two_devices(count: int) -> None:
    """The second call takes the arrays of the first over, and leaves its results alone."""
    forked = pcbatch.batch(pairs, plan=pcbatch.Plan(fork="always"))
    calls = [(np.arange(count, dtype=np.int32) * 5 + first) % 13 for first in (12, 3)]
    found = [forked(numbers, devices=2) for numbers in calls]
    for one, numbers in zip(found, calls, strict=True):
        assert_lanes_equal(one, [pairs(int(n)) for n in numbers], rtol=1e-6)


def test_trips_are_those_of_all_devices(monkeypatch: pytest.MonkeyPatch) -> None:
    """A trip visits each of these blocks once at most."""
    monkeypatch.setattr(devices, "EACH", 3)
    tasks = TaskExecutable(programs.fib_plain_frames(), TaskOptions(width=4, frames=200, reserve=2, stats=True))
    several = DeviceTasks(tasks, Mesh(np.array(jax.devices()[:2]), ("d",)), _nowhere, _nowhere)
    raw = several.run({"n": np.array([13], np.int32)}, 1).raw
    visits = int(np.sum(np.asarray(raw.counts[0])[:, 0]))
    assert visits <= len(tasks.program.blocks) * int(raw.trips)


@pytest.mark.share(2)
@pytest.mark.parametrize("count", [1, 20])
def test_limits_on_two_devices(count: int) -> None:
    """Steps are those of all devices together."""
    numbers = np.full(count, 3, np.int32)
    numbers[0] = 15
    for most, status in ((2000, pcbatch.Status.STEP_LIMIT), (20_000, pcbatch.Status.OK)):
        found = pcbatch.batch(pairs, plan=pcbatch.Plan(fork="always"), max_steps=most).run(numbers, devices=2)
        assert found.status.tolist() == [status] + [pcbatch.Status.OK] * (count - 1)
        assert_lanes_equal(found.value[1:], [pairs(3)] * (count - 1)) if count > 1 else None


@pytest.mark.share(2)
@pytest.mark.parametrize("count", [3, 19])
def test_examples_that_fail_on_one_device(count: int) -> None:
    numbers = np.zeros(count, np.int32)
    numbers[1] = 2
    wanted, found = (
        pcbatch.batch(picky, plan=pcbatch.Plan(fork=fork)).run(numbers, devices=2) for fork in ("never", "always")
    )
    assert found.status.tolist() == wanted.status.tolist()
    np.testing.assert_array_equal(found.value, wanted.value)


def test_more_examples_than_run_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pcbatch.runtime.tasks.executable, "CHUNK", 8)
    numbers = np.arange(45, dtype=np.int32) % 9
    found = pcbatch.batch(pairs, plan=pcbatch.Plan(fork="always")).map(numbers, devices=2).value
    assert_lanes_equal(found, [pairs(int(n)) for n in numbers], rtol=1e-6)
