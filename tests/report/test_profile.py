"""`explain_schedule` and `profile`: what is counted is true, and costs nothing where it is not asked for."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import pcbatch
from pcbatch import Dense, Few, UsageError
from pcbatch.diagnostics.tables import bars, number, ranges, shortened, table, time
from pcbatch.report.profile import _merged
from pcbatch.runtime.vm import timeline
from tests.oracles.plans import replanned
from tests.programs.classics import fib
from tests.runtime.test_counts import fib_dear
from tests.runtime.test_schedule import Nothing, two_dear

pytestmark = [pytest.mark.share(3), pytest.mark.promotion("standard")]

ROOT = Path(__file__).parents[2]
N = np.array([3, 7, 4, 5, 9, 2], np.int32)


@pcbatch.batch(plan=pcbatch.Plan(unroll=1))
def count(n):
    steps = 0
    while n > 0:
        n = n - 1
        steps = steps + 1
    return steps


class TestExplanation:
    """What is decided, without running anything."""

    def test_rows(self) -> None:
        plan = pcbatch.batch(fib).explain_schedule(jax.ShapeDtypeStruct((1000,), jnp.int32))
        opt = pcbatch.batch(fib).lower(N).stages.opt
        assert [row.label for row in plan.rows] == [block.label for block in opt.blocks]
        assert plan.lanes == plan.inputs == 1000 and plan.policy == "sweep" and plan.expensive == ()
        rows = [row for row in plan.rows if row.lines]  # in the others lanes only fail
        assert all(row.why and row.mode and row.function == "fib" for row in rows) and len(rows) == 4
        assert max(row.visits for row in plan.rows) == 1.0
        assert plan.trip_ns == sum(row.trip_ns for row in plan.rows) > 0
        assert all(row.xla is not None and 0 < row.xla.flops < 20 and 0 < row.xla.bytes < 200 for row in rows)
        few = pcbatch.batch(fib, plan=pcbatch.Plan(modes=pcbatch.Few(16))).explain_schedule(
            jax.ShapeDtypeStruct((1000,), jnp.int32)
        )
        assert all((row.width, row.mode.split()[0], row.why) == (16, "16", "as `modes` says") for row in few.rows)

    def test_it_is_what_runs(self) -> None:
        compiled, _ = pcbatch.batch(fib)._compiled((N,), {})
        plan = pcbatch.batch(fib).explain_schedule(N, lanes=4)
        assert plan.lanes == 4
        assert [row.mode for row in plan.rows] == [str(mode) for mode in compiled.executable.machine.modes(4)]

    def test_many_inputs_go_through_fewer_lanes(self) -> None:
        plan = count.explain_schedule(jax.ShapeDtypeStruct((5000,), jnp.int32))
        assert plan.inputs == 5000 and plan.lanes == plan.map_lanes < 5000
        assert "for 5000 inputs" in str(plan)

    def test_expensive_blocks_and_reasons(self) -> None:
        args = np.ones((8, 16), np.float32), np.arange(8, dtype=np.int32), np.arange(8, dtype=np.int32)
        plan = two_dear.explain_schedule(*args)
        assert plan.policy == "drain" and len(plan.expensive) == 2
        assert all(label in plan.reason for label in plan.expensive)
        assert f"{plan.expensive[0]} *" in str(plan)
        assert (
            two_dear.with_options(plan=pcbatch.Plan(schedule="largest")).explain_schedule(*args).reason
            == "as `schedule` says"
        )
        assert "yours" in two_dear.with_options(plan=pcbatch.Plan(schedule=Nothing())).explain_schedule(*args).reason

    def test_other_emitters_compute_all_lanes(self) -> None:
        plan = replanned(count, emitter="port", modes=Few(2)).explain_schedule(N)
        assert {row.mode for row in plan.rows} == {str(Dense())} and plan.emitter == "port"

    def test_json(self) -> None:
        plan = count.explain_schedule(N)
        found = json.loads(plan.to_json())
        assert found["lanes"] == 6 and [row["label"] for row in found["rows"]] == [row.label for row in plan.rows]
        assert found["trip_ns"] == plan.trip_ns

    def test_as_a_stage(self) -> None:
        lowered = count.lower(N)
        first, _, rest = lowered.as_text("schedule").partition("\n")  # a plain call has another plan
        assert first.startswith("plan in force: ") and str(count.explain_schedule(N)).endswith(rest)
        assert json.loads(lowered.show("schedule", "json"))["function"] == "count"

    @pytest.mark.full_only
    def test_equal_in_every_process(self) -> None:
        code = (
            "import jax, jax.numpy as jnp, pcbatch; from tests.programs.classics import fib\n"
            "print(pcbatch.batch(fib).explain_schedule(jax.ShapeDtypeStruct((300,), jnp.int32)).to_json())"
        )

        def printed(seed: str) -> str:
            env = {**os.environ, "PYTHONHASHSEED": seed}
            done = subprocess.run(
                [sys.executable, "-c", code], check=True, capture_output=True, text=True, env=env, cwd=ROOT
            )
            return done.stdout

        assert printed("1") == printed("2") != ""

    def test_what_it_refuses(self) -> None:
        with pytest.raises(UsageError, match="PCB415"):
            pcbatch.batch(fib, strategy="local").explain_schedule(N)
        with pytest.raises(UsageError, match="PCB401"):
            count.explain_schedule(N, lanes=0)


class TestProfile:
    """Counts, as a whole and over time."""

    def test_it_counts_what_statistics_count(self) -> None:
        batched = pcbatch.batch(fib_dear, plan=pcbatch.Plan(schedule="earliest"))
        profile, run = batched.profile(N), batched.with_options(stats=True).run(N)
        assert profile.trips == int(run.stats.trips)
        for block, counted in zip(profile.blocks, run.stats.blocks, strict=True):
            assert (block.label, block.visits) == (counted.label, counted.visits)
            assert (block.active, block.offered) == (counted.active, counted.offered)
        np.testing.assert_array_equal(profile.result.value, batched(N))
        assert 0 < profile.utilisation <= 1

    def test_over_time(self) -> None:
        profile = replanned(count, schedule="earliest", modes=Dense()).profile(N)
        line = profile.timeline
        assert line.span == 1 and line.trips.tolist() == [1] * profile.trips
        # Each lane runs the loop n times, and ends one trip later at the latest.
        assert line.active.sum() >= N.sum() and line.live[0] == len(N) and set(line.lanes) == {len(N)}
        assert (np.diff(line.live) <= 0).all()
        np.testing.assert_array_equal(line.visits.sum(axis=0), [b.visits for b in profile.blocks])

    def test_a_long_run_takes_no_more_memory(self) -> None:
        n = np.array([3, 5000], np.int32)
        profile = replanned(count, schedule="earliest", modes=Dense()).profile(n)
        line = profile.timeline
        assert line.trips.sum() == profile.trips > 4 * timeline.BUCKETS
        assert line.span == 2 ** int(np.ceil(np.log2(profile.trips / timeline.BUCKETS)))
        assert timeline.BUCKETS // 2 < len(line.trips) <= timeline.BUCKETS
        assert line.active.sum() >= n.sum()
        assert line.alive[-1] == 0.5 and 0.5 < line.alive[0] < 1

    def test_through_few_lanes(self) -> None:
        n = np.arange(40, dtype=np.int32)[::-1].copy()
        profile = count.profile(n, lanes=8)
        np.testing.assert_array_equal(profile.result.value, n)
        assert profile.schedule.lanes == 8 and profile.schedule.inputs == 40
        assert (profile.timeline.lanes <= 8 * profile.timeline.trips).all()
        assert sum(b.active for b in profile.blocks) >= n.sum()

    def test_stacks_grow(self) -> None:
        n = np.array([1, 60], np.int32)

        @pcbatch.batch
        def deep(n):
            return 0 if n <= 0 else 1 + deep(n - 1)

        profile = deep.profile(n)
        assert profile.result.value.tolist() == [1, 60]
        assert profile.timeline.trips.sum() == profile.trips

    def test_on_several_devices(self) -> None:
        n = np.array([3, 2000, 5, 9, 1, 700], np.int32)
        profile = replanned(count, schedule="earliest", modes=Dense()).profile(n, devices=2)
        np.testing.assert_array_equal(profile.result.value, n)
        assert sum(b.active for b in profile.blocks) >= n.sum()
        assert (
            3 * profile.timeline.span < profile.timeline.lanes[0] < 6 * profile.timeline.span
        )  # one device is done soon

    def test_devices_at_their_own_resolution(self) -> None:
        """One device made 4 trips, the other 512."""
        counts, crowd = np.zeros((2, 256, 1, 3), np.uint32), np.zeros((2, 256, 2), np.uint32)
        counts[0, :4], counts[1] = 1, 2
        crowd[0, :4], crowd[1] = 1, 2
        line = _merged(512, counts, crowd, np.array([1, 2]))
        assert line.span == 2 and line.trips.tolist() == [2] * 256
        assert line.visits[:3, 0].tolist() == [4, 4, 2] and line.live[:3].tolist() == [4, 4, 2]

    def test_no_lanes(self) -> None:
        profile = count.profile(np.zeros((0,), np.int32))
        assert profile.trips == 0 and profile.utilisation == 0.0 and str(profile)

    def test_text_and_json(self) -> None:
        args = np.ones((8, 16), np.float32), np.arange(8, dtype=np.int32), np.arange(8, dtype=np.int32)
        profile = two_dear.profile(*args)
        text = str(profile)
        assert "policy drain" in text and "live lanes" in text
        assert all(f"{b.utilisation * 100:.0f} % of {b.label}" in text for b in profile.expensive)
        found = json.loads(profile.to_json())
        assert found["trips"] == profile.trips and len(found["timeline"]["active"]) == len(profile.timeline.trips)
        assert [b["visits"] for b in found["blocks"]] == [b.visits for b in profile.blocks]
        assert sum(b.work for b in profile.blocks) == pytest.approx(1.0)

    def test_of_a_method(self) -> None:
        class Counter:
            @pcbatch.batch
            def run(self, n):
                while n > 2:
                    n = n - 2
                return n

        assert Counter().run.profile(N).trips > 0
        assert Counter().run.explain_schedule(N).function == "run"

    def test_what_it_refuses(self) -> None:
        with pytest.raises(UsageError, match="PCB421"):
            jax.jit(count.profile)(N)
        with pytest.raises(UsageError, match="PCB415"):
            pcbatch.batch(fib, strategy="local").profile(N)


class TestNothingIsCountedUnasked:
    """Programs without statistics hold no counter."""

    @pytest.mark.full_only
    @pytest.mark.parametrize("schedule", ["sweep", "drain", "largest"])
    def test_no_counter_in_the_program(self, schedule: str) -> None:
        batched = pcbatch.batch(fib, plan=pcbatch.Plan(schedule=schedule))
        lowered = batched.lower(N)
        before = {stage: lowered.as_text(stage) for stage in ("jaxpr", "stablehlo")}
        counting = batched.with_options(stats=True).lower(N).as_text("jaxpr")
        blocks = len(lowered.stages.opt.blocks)
        assert f"u32[{blocks},2]" in counting and f"u32[{blocks},2]" not in before["jaxpr"]
        assert f"[{timeline.BUCKETS}" not in before["jaxpr"] and f"<{timeline.BUCKETS}x" not in before["stablehlo"]
        batched.profile(N)
        assert {stage: lowered.as_text(stage) for stage in before} == before  # profiling leaves the others alone

    def test_the_state_has_no_record(self) -> None:
        executable = pcbatch.batch(fib)._compiled((N,), {})[0].executable
        assert not set(timeline.KEYS) & set(_state(executable)) and not {"visits", "active"} & set(_state(executable))
        assert set(timeline.KEYS) < set(_state(executable.profiling))


def _state(executable: Any) -> dict[str, Any]:
    param = executable.program.params[0]
    return dict(executable.machine.start({param: jnp.asarray(N)}, len(N), 4).carry)


class TestPicture:
    """`Profile.plot`."""

    def test_it_is_drawn(self, tmp_path: Path) -> None:
        pytest.importorskip("matplotlib")
        count.profile(N).plot(tmp_path / "profile.png")
        assert (tmp_path / "profile.png").read_bytes().startswith(b"\x89PNG")
        count.profile(np.zeros((0,), np.int32)).plot(tmp_path / "empty.svg")

    def test_without_matplotlib(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setitem(sys.modules, "matplotlib", None)
        monkeypatch.setitem(sys.modules, "matplotlib.figure", None)
        with pytest.raises(ImportError, match=r"pcbatch\[viz\]"):
            count.profile(N).plot(tmp_path / "profile.png")


def test_words_of_tables() -> None:
    shown = [number(v) for v in (None, 0, 0.0381, 1.54, 42, 41999, 1.3e6, 2.5e9)]
    assert shown == ["-", "0", "0.038", "1.5", "42", "42k", "1.3M", "2.5G"]
    assert [time(v) for v in (80, 1500, 2.5e6, 3e9)] == ["80 ns", "1.5 us", "2.5 ms", "3 s"]
    assert ranges((3, 4, 5, 9)) == "3-5, 9" and ranges(()) == ""
    assert shortened("a  +\n b", 9) == "a + b" and shortened("x" * 12, 9) == "xxxxxx..."
    assert bars([0, 0.5, 1, 7]) == " ▄██"
    assert table(("a", "n"), [("x", "10"), ("yy", "5")], right=("n",)) == "a    n\nx   10\nyy   5"
