"""Monitored runs of calls side by side: they stop, are saved, go on, and give what lanes give."""

from __future__ import annotations

import signal
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import pcbatch
from pcbatch import Status
from pcbatch.runtime.execute import run_kinds
from pcbatch.runtime.execute.task_run import TaskRun
from tests.oracles.plans import replanned


@pcbatch.batch(plan=pcbatch.Plan(fork="always"))
def mixed(n, key):
    """Some lanes raise, at once or deep inside; the others draw."""
    if n < 0:
        raise ValueError(f"bad {n}")
    if n == 0:
        return jax.random.uniform(key)
    return mixed(n - 2, key) * 0.5 + mixed(n - 1, jax.random.fold_in(key, n))


@pcbatch.batch(plan=pcbatch.Plan(fork="always"))
def endless(n):
    """An odd number from 3 on never ends."""
    if n == 3:
        while n > 0:
            n = n + 1 - 1
        return 0.5
    if n <= 1:
        return 0.25
    return endless(n - 2) - endless(n - 4)


@pcbatch.batch(plan=pcbatch.Plan(fork="always"))
def total(n):
    if n <= 1:
        return 1
    return total(n - 2) + total(n - 1)


KEYS = jax.random.split(jax.random.key(1), 8)
NS = jnp.array([5, 0, 2, 9, -1, 0, 3, 10])


def lanes_of(f: Any) -> Any:
    return replanned(f, fork="never")


def same(a: Any, b: Any) -> None:
    assert np.array_equal(a.status, b.status)
    np.testing.assert_array_equal(np.asarray(a.value), np.asarray(b.value))


def test_a_run_that_is_written_after_every_few_trips(tmp_path: Path) -> None:
    """Tasks first, then lanes for those that have failed: each state is written, read and goes on."""
    path, m, seen = tmp_path / "run.npz", mixed.start(NS, KEYS), []
    assert isinstance(m._paused, TaskRun)
    while not m.done:
        m = m.advance(max_trips=3)
        m.save(path)
        m = mixed.load(path)
        seen.append(m.progress().finished)
    assert seen == sorted(seen) and seen[-1] == 8 and 0 < seen[-2] < 8
    same(m.result(), lanes_of(mixed).run(NS, KEYS))


def test_progress_and_ctrl_c() -> None:
    reports: list[tuple[int, int | None]] = []
    wanted = lanes_of(mixed).run(NS, KEYS)
    same(mixed.run(NS, KEYS, progress=lambda done, total: reports.append((done, total))), wanted)
    assert reports[0] == (0, 8) and reports[-1] == (8, 8)
    with pytest.raises(pcbatch.Interrupted) as stopped:
        mixed.run(NS, KEYS, progress=lambda done, total: signal.raise_signal(signal.SIGINT))
    machine = stopped.value.machine
    assert machine is not None and not machine.done
    same(machine.advance().result(), wanted)


def test_runs_that_do_not_end() -> None:
    ns = jnp.array([4, 6, 8, 5, 10])
    m = endless.start(ns).advance(max_trips=200)
    result = m.result()
    ok = np.array([0, 1, 2, 4])
    assert result.status.tolist() == [0, 0, 0, int(Status.RUNNING), 0]
    assert np.array_equal(result.value[ok], lanes_of(endless)(ns[ok])) and np.isnan(result.value[3])
    (place,) = m.where()
    assert (place.function, place.lanes, place.sample, place.file) == ("endless", 1, 3, Path(__file__).name)
    with pytest.raises(pcbatch.BatchRuntimeError, match=r"while n > 0:(.|\n)*for example 0 \(n=5\)"):
        endless(ns[3:4], timeout=0.2)


def test_the_sample_is_an_example_that_waits_there() -> None:
    places = total.start(jnp.array([0, 12, 1])).advance(max_trips=4).where()
    assert places and {place.sample for place in places} == {1}


def test_more_examples_than_run_at_once(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(run_kinds, "CHUNK", 16)
    ns = jnp.arange(40) % 9 - 1
    keys = jax.random.split(jax.random.key(0), 40)
    m, path = mixed.start(ns, keys), tmp_path / "run.npz"
    assert m.progress().waiting == 40
    while not m.done:
        m = m.advance(max_trips=7)
        m.save(path)
        m = mixed.load(path)
    same(m.result(), lanes_of(mixed).run(ns, keys))


def test_pools_grow_between_programs() -> None:
    few = pcbatch.batch(total.fn, plan=pcbatch.Plan(fork="always"))
    ns = jnp.array([14, 3])
    program, given = few._programs.of_call((ns,), {})
    assert program.tasks is not None
    program.tasks.options = type(program.tasks.options)(width=4, frames=9, reserve=2, room=8)
    program.tasks._sizes.clear()
    m = few.start(ns)
    before = m._paused.sizes
    m = m.advance()
    assert m._paused.sizes != before and m.result().value.tolist() == [610, 3]


def test_a_file_is_read_by_the_form_that_wrote_it(tmp_path: Path) -> None:
    path, other = tmp_path / "tasks.npz", tmp_path / "lanes.npz"
    ns = jnp.arange(12)
    total.start(ns).advance(max_trips=3).save(path)
    replanned(total, fork="never", schedule="sweep").start(ns).advance(max_trips=3).save(other)
    with pytest.raises(pcbatch.StateError, match="its calls ran side by side"):
        lanes_of(total).load(path)
    assert np.array_equal(total.load(path).advance().result().value, total(ns))
    m = total.load(other)  # the program for lanes is there too
    assert not isinstance(m._paused, TaskRun) and np.array_equal(m.advance().result().value, total(ns))


def test_a_machine_is_a_value() -> None:
    ns = jnp.arange(12)
    m = total.start(ns)
    first, second = m.advance(max_trips=3), m.advance()
    assert not first.done and second.done
    assert np.array_equal(first.advance(donate=True).result().value, second.result().value)
    assert total.run(ns, save_to=None, timeout=60).value.tolist() == total(ns).tolist()


def test_save_to_goes_on(tmp_path: Path) -> None:
    path, ns = tmp_path / "kept.npz", jnp.arange(12)
    stopped = total.run(ns, save_to=path, timeout=0)
    assert np.all(stopped.status == Status.RUNNING)
    result = total.run(ns, save_to=path)
    assert result.value.tolist() == total(ns).tolist()
    assert total.run(ns, save_to=path).value.tolist() == total(ns).tolist()


def test_map_is_monitored_too(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """By tasks, some inputs at a time; by lanes where it is asked for them."""
    monkeypatch.setattr(run_kinds, "CHUNK", 16)
    ns, path, seen = jnp.arange(40) % 9, tmp_path / "map.npz", []
    wanted = [1, 1, 2, 3, 5, 8, 13, 21, 34]
    stopped = total.map(ns, save_to=path, timeout=0)
    assert np.all(stopped.status == Status.RUNNING)
    assert isinstance(total.load(path)._paused, TaskRun)
    result = total.map(ns, save_to=path, progress=lambda done, of: seen.append((done, of)))
    assert result.value.tolist() == [wanted[int(n)] for n in ns]
    assert seen[-1] == (40, 40)
    assert total.map(ns, lanes=8, timeout=60).value.tolist() == result.value.tolist()
