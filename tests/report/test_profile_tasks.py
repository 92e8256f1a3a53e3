"""Statistics and profiles of calls side by side: every task is counted once, and lanes that run examples again."""

from __future__ import annotations

from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import pcbatch

NS = np.array([5, 0, 9, -1, 7, 1, 1, 12])


@pcbatch.batch(plan=pcbatch.Plan(fork="always"), stats=True)
def total(n):
    if n < 0:
        raise ValueError("negative")
    if n <= 1:
        return 0.5
    return jnp.sin(total(n - 2)) + total(n - 1)


def joins(n: int) -> int:
    """How often two results of a call meet."""
    return 0 if n <= 1 else 1 + joins(n - 1) + joins(n - 2)


def test_statistics_count_each_task() -> None:
    result = total.run(NS)
    lanes, tasks = result.stats.blocks[:-4], result.stats.blocks[-4:]
    wanted = sum(joins(int(n)) for n in NS)
    assert [b.active for b in tasks if b.says("jnp.sin")] == [wanted]
    assert sum(b.active for b in lanes) == 2 and result.status.tolist() == [0, 0, 0, 5, 0, 0, 0, 0]
    assert 0 < result.stats.utilisation("jnp.sin") <= 1
    monitored = total.run(NS, progress=lambda done, total: None)
    assert [b.active for b in monitored.stats.blocks] == [b.active for b in result.stats.blocks]
    assert [b.lines for b in tasks if b.says("jnp.sin")] == [(23,)]


def test_statistics_inside_jit() -> None:
    visits = jax.jit(lambda ns: total.run(ns).stats.visits("jnp.sin"))(NS[:3])
    assert int(visits) > 0


@pytest.mark.parametrize("ns", [NS, NS[NS >= 0]])
def test_a_profile_is_of_what_runs(ns: np.ndarray, tmp_path: Path) -> None:
    profile = total.with_options(stats=False).profile(ns)
    wanted = sum(joins(int(n)) for n in ns)
    tasks = [block for block in profile.blocks if block.label.startswith("total.")]
    assert len(tasks) == 4 and sum(b.active for b in tasks if "jnp.sin" in b.plan.text) == wanted
    assert len(profile.blocks) == 4 + (0 if np.all(ns >= 0) else 5)
    line = profile.timeline
    assert line.trips.sum() == profile.trips and np.all(line.live <= line.lanes)
    assert line.visits.sum(axis=0).tolist() == [block.visits for block in profile.blocks]
    assert "frames were in use" in profile.schedule.reason and "policy lists" in str(profile)
    profile.html(tmp_path / "profile.html")
    assert "jnp.sin(total(n - 2))" in (tmp_path / "profile.html").read_text()
