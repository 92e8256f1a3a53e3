"""Runs that are looked after, where something goes wrong around them: files, disks, clocks, iterators, devices."""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import pcbatch
from pcbatch import Status
from pcbatch.runs import checkpoint_file
from pcbatch.runtime.execute import host_loop
from tests.programs.compare import assert_same_bits
from tests.runs.test_runs import collatz, endless, fib

pytestmark = pytest.mark.share(3)

NUMBERS = jnp.arange(1, 20)


@pcbatch.batch
def down(n):
    """As deep as `n`, with something to keep."""
    x = jnp.full(50, n)
    return 0 if n <= 0 else down(n - 1) + x[0] // n


class TestTime:
    @pytest.mark.full_only
    @pytest.mark.parametrize("seconds", [1e308, float("inf"), 10**400, np.float32(1e30)])
    def test_more_than_a_clock_holds(self, seconds: Any, tmp_path: Path) -> None:
        assert collatz.start(NUMBERS).advance(timeout=seconds).done
        for lanes in (2, None):
            path = tmp_path / str(lanes)
            assert not collatz.map(NUMBERS, lanes=lanes, timeout=seconds, save_to=path, every=seconds).status.any()

    def test_compiling_takes_no_time(self, monkeypatch: pytest.MonkeyPatch) -> None:
        clock = [100.0]
        monkeypatch.setattr(time, "monotonic", lambda: clock[0])
        seen = host_loop.HostLoop(until=101.0)
        for program in ("one", "deeper"):
            with seen.program(program) as run:
                assert run.budget == 0, "the first run of each program waits for the compiler"
                clock[0] += 50
            assert seen.between(host_loop.RunCounts(1), None)
            with seen.program(program) as run:
                assert run.budget >= host_loop.FIRST
                run.made = host_loop.FIRST
        with seen.untimed():
            clock[0] += 50
            assert seen.may_continue()
        assert seen.may_continue()
        clock[0] += 1
        assert not seen.may_continue() and seen.why == "time"

    @pytest.mark.full_only
    def test_a_function_that_is_new_gets_somewhere(self) -> None:
        """However long it takes to compile, there is time to run."""
        for how in ({}, {"lanes": 4}, {"lanes": 4, "chunk": 5}):
            assert not fib.with_options().map(np.arange(9), timeout=0.2, **how).status.any()

    def test_an_iterator_that_is_slow(self, tmp_path: Path) -> None:
        def slow() -> Iterator[np.ndarray]:
            for _ in range(1000):
                time.sleep(0.02)
                yield np.arange(1, 8)

        collatz.map(iter([np.arange(1, 8)]), lanes=4)  # compiles
        for how in ({}, {"save_to": tmp_path / "run"}):
            result = collatz.map(slow(), lanes=4, timeout=0.3, **how)
            assert 0 < len(result.status) < 300 and set(result.status.tolist()) <= {Status.OK, Status.RUNNING}
        expected = np.tile(np.asarray(collatz(np.arange(1, 8))), 100)
        result = collatz.map((np.arange(1, 8) for _ in range(100)), lanes=4, save_to=tmp_path / "run")
        assert_same_bits(result.value, expected)

    def test_ctrl_c_while_an_iterator_is_slow(self) -> None:
        def slow() -> Iterator[np.ndarray]:
            yield np.arange(1, 8)
            os.kill(os.getpid(), 2)
            for _ in range(1000):
                time.sleep(0.02)
                yield np.arange(1, 8)

        began = time.monotonic()
        with pytest.raises(pcbatch.Interrupted) as stopped:
            collatz.map(slow(), progress=lambda done, total: None)
        assert stopped.value.machine is None and time.monotonic() - began < 15


class TestTraces:
    def test_machines_in_a_trace(self) -> None:
        m = collatz.start(NUMBERS)
        for use in (lambda: m.advance(1).done, lambda: m.advance().result().value, lambda: m.result().value):
            with pytest.raises(pcbatch.UsageError, match="PCB441"):
                jax.jit(use)()
        assert jax.jit(lambda: m.progress().trips)() == 0

    def test_a_machine_that_gave_its_memory_away_is_shown(self) -> None:
        m = collatz.start(NUMBERS).advance(1)
        m.advance(1, donate=True)
        assert "was given to a later machine" in repr(m)


class TestPaths:
    def test_what_is_no_file_stays_what_it_is(self, tmp_path: Path) -> None:
        os.mkfifo(tmp_path / "pipe")
        (tmp_path / "circle").symlink_to(tmp_path / "circle")
        m = collatz.start(NUMBERS)
        for path in (tmp_path / "pipe", tmp_path / "circle", tmp_path / ("x" * 300), "zero\0byte", "~nobody_here/x"):
            for use in (m.save, collatz.load, lambda p: collatz.run(NUMBERS, save_to=p)):
                with pytest.raises(pcbatch.StateError, match="PCB442"):
                    use(path)
        assert (tmp_path / "pipe").is_fifo() and sorted(os.listdir(tmp_path)) == ["circle", "pipe"]

    def test_a_file_of_others(self, tmp_path: Path) -> None:
        for content in (b"", b"hello", b"PK\3\4"):
            (tmp_path / "run").write_bytes(content)
            with pytest.raises(pcbatch.StateError, match="cut off, or it is no archive"):
                collatz.load(tmp_path / "run")

    def test_a_write_that_fails_leaves_nothing(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        def full(*_: Any, **__: Any) -> None:
            raise OSError(28, "No space left on device")

        monkeypatch.setattr(np, "savez", full)
        with pytest.raises(OSError, match="No space"):
            collatz.start(NUMBERS).save(tmp_path / "run")
        assert os.listdir(tmp_path) == []

    def test_what_killed_processes_leave_is_swept_up(self, tmp_path: Path) -> None:
        old, new, other = (tmp_path / name for name in (".run.0.partial", ".run.1.partial", ".ran.0.partial"))
        for file in (old, new, other):
            file.touch()
        for file in (old, other):
            os.utime(file, (0, time.time() - 2 * checkpoint_file.FORSAKEN))
        collatz.start(NUMBERS).save(tmp_path / "run")
        assert not old.exists() and new.exists() and other.exists()

    def test_writers_of_one_file(self, tmp_path: Path) -> None:
        """Each writes a whole file, and there is one at any time."""
        path, wrong = tmp_path / "run", []
        machines = [collatz.start(jnp.arange(1, 3000)).advance(k) for k in (1, 2, 3)]
        machines[0].save(path)

        def write(m: Any) -> None:
            try:
                for _ in range(15):
                    m.save(path)
                    assert collatz.load(path).progress().trips in (1, 2, 3)
            except Exception as error:
                wrong.append(error)

        writers = [threading.Thread(target=write, args=(m,)) for m in machines]
        for writer in writers:
            writer.start()
        for writer in writers:
            writer.join()
        assert wrong == [] and os.listdir(tmp_path) == ["run"]


class TestGoingOn:
    def test_a_saved_machine_is_a_checkpoint(self, tmp_path: Path) -> None:
        m = collatz.start(NUMBERS).advance(2)
        m.save(tmp_path / "run")
        result = collatz.run(NUMBERS, save_to=tmp_path / "run")
        assert_same_bits(result.value, collatz(NUMBERS))
        assert int(result.stats.trips) == m.advance().progress().trips
        m.save(tmp_path / "run")
        with pytest.raises(pcbatch.StateError, match=r"PCB443.*other arguments"):
            collatz.run(NUMBERS[::-1], save_to=tmp_path / "run")

    def test_arguments_that_are_gone(self, tmp_path: Path) -> None:
        numbers = NUMBERS + 0
        m = collatz.start(numbers).advance(2)
        numbers.delete()
        m.save(tmp_path / "run")
        with pytest.raises(pcbatch.StateError, match="does not tell the arguments"):
            collatz.run(NUMBERS, save_to=tmp_path / "run")
        assert_same_bits(collatz.load(tmp_path / "run").advance().result().value, collatz(NUMBERS))

    def test_other_numbers_of_inputs(self, tmp_path: Path) -> None:
        collatz.start(NUMBERS).save(tmp_path / "run")
        with pytest.raises(pcbatch.StateError, match="PCB443.*other inputs"):
            collatz.load(tmp_path / "run", NUMBERS[:3])

    def test_other_parameters(self, tmp_path: Path) -> None:
        def old(n):
            while n > 0:
                n -= 1
            return n

        def new(n, step=1):
            while n > 0:
                n -= step
            return n

        pcbatch.batch(old).start(NUMBERS).save(tmp_path / "run")
        with pytest.raises(pcbatch.StateError, match=r"PCB443[\s\S]*other parameters"):
            pcbatch.batch(new).load(tmp_path / "run")

    def test_lanes_that_had_no_room_get_more(self, tmp_path: Path) -> None:
        """What the error advises helps a run that is kept, too."""
        ns, small = jnp.array([3, 5000, 4, 60]), down.with_options(max_memory="300kB")
        result = small.run(ns, save_to=tmp_path / "run")
        assert result.status.tolist() == [0, Status.STACK_FULL, 0, 0]
        assert_same_bits(small.run(ns, save_to=tmp_path / "run").status, result.status)
        large = down.with_options(max_memory="1GB")
        m = large.load(tmp_path / "run")
        assert not m.done and m.progress().finished == 3
        assert_same_bits(large(ns, save_to=tmp_path / "run"), large(ns))

    def test_a_state_that_does_not_fit_is_not_read(self, tmp_path: Path) -> None:
        fib.start(jnp.arange(1000)).save(tmp_path / "run")
        with pytest.raises(MemoryError, match="PCB444"):
            fib.with_options(max_memory="20kB").load(tmp_path / "run")

    def test_one_device_of_a_mesh(self, tmp_path: Path) -> None:
        """An axis in front that has one device is none."""
        one = jax.devices()[1:2]
        collatz.start(NUMBERS, devices=one).advance(2).save(tmp_path / "one")
        collatz.start(NUMBERS).advance(2).save(tmp_path / "none")
        for path in (tmp_path / "one", tmp_path / "none"):
            for how in ({}, {"devices": one}):
                assert_same_bits(collatz.load(path, **how).advance().result().value, collatz(NUMBERS))


@pytest.mark.full_only
def test_explicit_axes() -> None:
    """Lanes whose sharding is in their type are dealt out like others."""
    mesh = jax.make_mesh((2,), ("x",), axis_types=(jax.sharding.AxisType.Explicit,))
    ns = jax.device_put(jnp.arange(2, 8), jax.NamedSharding(mesh, jax.P("x")))
    for run in (
        lambda: collatz.start(ns).advance(2).advance().result(),
        lambda: collatz.run(ns, timeout=60),
        lambda: collatz.map(ns, lanes=2, timeout=60),
    ):
        assert_same_bits(np.asarray(run().value), np.asarray(collatz(np.arange(2, 8))))
    assert endless.run(ns, timeout=0.1).status.tolist() == [0, Status.RUNNING] * 3


class TestOneAfterTheOther:
    """Runs with progress, a time limit or a file run one lane after the other where plain calls do."""

    def test_as_a_plain_call(self, tmp_path: Path) -> None:
        @pcbatch.batch
        def found(n, limit):
            seen = [n]
            while seen[-1] != 1 and len(seen) < limit:
                last = seen[-1]
                seen.append(last // 2 if last % 2 == 0 else 3 * last + 1)
            return seen

        limits = jnp.full(NUMBERS.shape, 100)
        plain = found(NUMBERS, limits)
        program = found._programs.of_call((NUMBERS, limits), {}, alone=True)[0]
        assert program.is_alone_by_choice
        told: list[int] = []
        runs = [
            found.run(NUMBERS, limits, timeout=100),
            found.run(NUMBERS, limits, progress=lambda done, total: told.append(done)),
            found.run(NUMBERS, limits, save_to=tmp_path / "run"),
            found.run(NUMBERS, limits, save_to=tmp_path / "run"),  # goes on with what is done
        ]
        assert [run.value.tolist() for run in runs] == [plain.tolist()] * 4
        assert told[-1] == len(NUMBERS)
        assert checkpoint_file.read(tmp_path / "run")[0]["alone"]
        again = found.load(tmp_path / "run", NUMBERS, limits)
        assert again._compiled.is_alone_by_choice and again.result().value.tolist() == plain.tolist()
        assert found.start(NUMBERS, limits)._compiled.is_alone_by_choice
        together = found.with_options(plan=pcbatch.Plan(emitter="guard")).start(NUMBERS, limits).advance(3)
        together.save(tmp_path / "together")
        assert not found.load(tmp_path / "together", NUMBERS, limits)._compiled.is_alone_by_choice
        assert found.run(NUMBERS, limits, save_to=tmp_path / "together").value.tolist() == plain.tolist()
