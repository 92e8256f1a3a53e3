"""Runs as values: in bits, through files and after signals they give what `f.run` gives, bit for bit."""

from __future__ import annotations

import copy
import pickle
import signal
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import pcbatch
from pcbatch import Run, Status
from pcbatch.runtime.execute import host_loop
from pcbatch.runtime.vm.layout import PER_BLOCK
from tests.oracles.plans import replanned
from tests.programs import PROGRAMS, Program, batched
from tests.programs.batched import same
from tests.programs.compare import assert_same_bits

pytestmark = [pytest.mark.together, pytest.mark.share(3), pytest.mark.promotion("standard")]
NUMBERS = np.random.default_rng(1).integers(1, 900, 41).astype(np.int32)


collatz, deep = batched.collatz.with_options(), batched.deep.with_options()  # with stacks that have not grown
fib = replanned(batched.fib, stats=True, fork="never")  # in lanes, whose trips are counted here
fragile = batched.fragile.with_options(max_steps=40, stats=False)


@pcbatch.batch
def endless(n):
    """Ends for even numbers."""
    steps = 0
    while n != 0:
        n, steps = n - 2, steps + 1
        if n < 0:
            n += 2
    return steps


class Walk(NamedTuple):
    """Values of many types."""

    key: Any
    x: Any
    small: Any
    flag: Any


@pcbatch.batch(in_axes=(0, 0, None))
def walk(key, n, step):
    x, small, flag = jnp.zeros(3), jnp.float8_e4m3fn(0.5), False
    half = jnp.bfloat16(1)
    while n > 0:
        key, sub = jax.random.split(key)
        x = x + step["scale"] * jax.random.normal(sub, (3,))
        half, flag, n = half * jnp.bfloat16(0.75) + jnp.bfloat16(1), x[0] > 0, n - 1
        small = (half / 8).astype(jnp.float8_e4m3fn)
    return Walk(key, x, small, flag), half


def walks(lanes: int) -> tuple[Any, ...]:
    keys = jax.random.split(jax.random.key(1), lanes)
    return keys, jnp.arange(lanes, dtype=jnp.int32) % 17, {"scale": jnp.float32(0.25)}


def assert_same(found: pcbatch.Result, expected: pcbatch.Result) -> None:
    """Values, their weak types, statuses and trips."""
    same(found, expected)
    assert int(found.stats.trips) == int(expected.stats.trips)
    for a, b in zip(jax.tree.leaves(found.value), jax.tree.leaves(expected.value), strict=True):
        assert jax.typeof(a).weak_type == jax.typeof(b).weak_type


def ended(m: Run, trips: int) -> Run:
    """Advanced bit by bit."""
    while not m.done:
        before = m.progress()
        m = m.advance(trips)
        assert before.trips < m.progress().trips <= before.trips + 2 * trips or m.done
        assert before.finished <= m.progress().finished
    return m


class TestAdvance:
    @pytest.mark.share(90)
    @pytest.mark.long
    @pytest.mark.parametrize("program", PROGRAMS, ids=lambda program: program.name)
    def test_every_program(self, program: Program, tmp_path: Path) -> None:
        """A few trips at a time, with a file in between."""
        with program.mode():
            f, args = program.batched(), program.args(5)
            m = f.start(*args).advance(2)
            m.save(tmp_path / "run.npz")
            assert_same(f.load(tmp_path / "run.npz", *args).advance().result(), f.run(*args))

    @pytest.mark.parametrize("f", [fib, fib.with_options(stats=False), replanned(fib, schedule="earliest")])
    def test_bit_by_bit(self, f: Any) -> None:
        expected = f.run(jnp.arange(12))
        m = ended(f.start(jnp.arange(12)), 7)
        assert_same(m.result(), expected)
        assert m.progress().finished == 12 and m.where() == () and m.advance(5) is m
        if f is fib:
            assert m.result().stats.blocks == expected.stats.blocks

    def test_a_machine_is_a_value(self) -> None:
        start = fib.start(jnp.arange(12))
        middle = start.advance(30)
        assert (start.progress().trips, middle.progress().trips) == (0, 30)
        assert_same(middle.advance().result(), start.advance().result())
        assert_same(middle.advance().result(), middle.advance(10).advance().result())
        assert copy.copy(middle) is middle and copy.deepcopy([middle])[0] is middle
        with pytest.raises(AttributeError):
            middle._name = "other"  # type: ignore[misc]

    def test_memory_may_be_given_away(self) -> None:
        start = fib.start(jnp.arange(12))
        half = start.result()
        done = start.advance(20, donate=True).advance(donate=True)
        assert_same(done.result(), fib.run(jnp.arange(12)))
        assert half.status.tolist() == [Status.RUNNING] * 12, "a result shares no memory with its machine"
        for use in (start.result, start.advance, start.progress, start.where):
            with pytest.raises(pcbatch.UsageError, match="PCB440"):
                use()

    def test_arguments_stay_the_callers(self) -> None:
        numbers = jnp.arange(9)
        collatz.run(numbers + 1, progress=lambda *_: None)
        m = deep.start(numbers)
        m.advance(1, donate=True).advance(donate=True)
        assert numbers.tolist() == list(range(9))

    def test_what_has_not_ended(self) -> None:
        result = endless.start(jnp.array([4, 3, 0])).advance(1000).result()
        assert result.status.tolist() == [Status.OK, Status.RUNNING, Status.OK]
        assert result.value.tolist() == [2, np.iinfo(np.int32).min, 0]

    def test_failures(self) -> None:
        numbers = jnp.array([1, 5, 3, -2, 12, 5, 13, 2])
        assert_same(ended(fragile.start(numbers), 3).result(), fragile.run(numbers))

    def test_growing(self) -> None:
        f = deep.with_options()
        numbers = jnp.array([3, 700, 90, 5])
        m = ended(f.start(numbers), 50)
        assert_same(m.result(), deep.with_options().run(numbers))
        assert m.result().value.tolist() == numbers.tolist()

    @pytest.mark.full_only
    def test_keys_shared_values_and_small_types(self, tmp_path: Path) -> None:
        args = walks(9)
        expected = walk.run(*args)
        m = walk.start(*args).advance(3)
        m.save(tmp_path / "run")
        for again in (m, walk.load(tmp_path / "run")):
            assert_same(again.advance().result(), expected)

    @pytest.mark.parametrize("lanes", [41, 2600])
    def test_devices(self, lanes: int, tmp_path: Path) -> None:
        """Uneven shares, a lane for each input and few lanes for many."""
        numbers = np.resize(NUMBERS, lanes)
        expected = collatz.run(numbers, devices=2)
        m = collatz.start(numbers, devices=2).advance(1)
        m.save(tmp_path / "run")
        with pytest.raises(ValueError, match="PCB443"):
            collatz.load(tmp_path / "run")
        m = collatz.load(tmp_path / "run", devices=2)
        assert sum(place.lanes for place in m.where()) == m.progress().running > 0
        status, paused = np.asarray(m.result().status), m._paused
        assert paused is not None and m.progress().running == len(paused.running().inputs)
        assert set(paused.running().inputs) <= set(np.flatnonzero(status == Status.RUNNING))
        assert_same_bits(ended(m, 100).result().value, expected.value)

    @pytest.mark.full_only
    def test_more_inputs_than_lanes(self, tmp_path: Path) -> None:
        numbers = np.resize(NUMBERS, 1500)
        m = collatz.start(numbers)
        assert m.progress().waiting == 1500
        m = m.advance(5)
        assert m.progress().waiting > 0 and m.progress().finished + m.progress().running < 1500
        sample = m.where()[0].sample
        assert m.result().status[sample] == Status.RUNNING
        m.save(tmp_path / "run")
        expected = collatz.run(numbers)
        for again in (m, collatz.load(tmp_path / "run")):
            assert_same_bits(ended(again, 9).result().value, expected.value)

    def test_no_lanes(self, tmp_path: Path) -> None:
        m = collatz.start(jnp.zeros(0, jnp.int32))
        m.save(tmp_path / "run")
        for one in (m, m.advance(3), collatz.load(tmp_path / "run")):
            assert one.done and one.result().value.shape == (0,) and one.where() == ()
            assert one.progress().total == 0
        assert collatz.run(jnp.zeros(0, jnp.int32), timeout=1).value.shape == (0,)

    def test_methods(self, tmp_path: Path) -> None:
        m = Scaled(3).power.start(jnp.arange(5)).advance(2)
        m.save(tmp_path / "run")
        again = Scaled(3).power.load(tmp_path / "run")
        assert again.advance().result().value.tolist() == [3**k for k in range(5)]
        with pytest.raises(ValueError, match="PCB443"):
            Scaled(4).power.load(tmp_path / "run")

    def test_lines_of_lanes_that_print(self, capsys: pytest.CaptureFixture[str]) -> None:
        m = ended(talk.start(jnp.array([1, 3])), 1)
        said = sorted(capsys.readouterr().out.splitlines())
        assert said == ["[lane 0] n 1", "[lane 1] n 1", "[lane 1] n 2", "[lane 1] n 3"]
        assert m.done


class Scaled:
    """With a batched method."""

    def __init__(self, factor: int) -> None:
        self.factor = factor

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Scaled) and other.factor == self.factor

    def __hash__(self) -> int:
        return hash(self.factor)

    @pcbatch.batch
    def power(self, n):
        x = 1
        while n > 0:
            x, n = self.factor * x, n - 1
        return x


@pcbatch.batch(plan=pcbatch.Plan(schedule="earliest"))
def talk(n):
    while n > 0:
        print("n", n)
        n -= 1
    return n


class TestLooking:
    def test_progress(self) -> None:
        m = fib.start(jnp.array([1, 9, 9])).advance(12)
        p = m.progress()
        assert (p.total, p.finished, p.running, p.waiting, p.trips) == (3, 1, 2, 0, 12)
        assert 0.5 < p.utilisation <= 1 and sum(place.lanes for place in p.places) == 2
        assert repr(p).startswith("1 of 3 done, 12 trips, ") and "running: " in repr(p)
        assert "fib: 1 of 3 done" in repr(m)

    def test_where(self) -> None:
        m = endless.start(jnp.array([4, 3, 1, 0])).advance(300)
        (place,) = m.where()
        assert (place.lanes, place.sample, place.function) == (2, 1, "endless")
        assert place.file == "test_runs.py" and place.lines
        table = str(m.where()).splitlines()
        assert len(table) == 2 and table[0].split() == ["block", "function", "lines", "lanes", "for", "example"]
        assert str(m.advance(0).where()) == str(m.where()) == repr(m.where())

    def test_a_bar_and_a_function(self, capsys: pytest.CaptureFixture[str]) -> None:
        told: list[tuple[int, int]] = []
        collatz.run(NUMBERS, progress=lambda *report: told.append(report))
        assert told == sorted(told) and told[0] == (0, 41) and told[-1] == (41, 41)
        pytest.importorskip("tqdm")
        assert_same_bits(collatz.run(NUMBERS, progress=True).value, collatz.run(NUMBERS).value)
        assert "41/41" in capsys.readouterr().err

    @pytest.mark.full_only
    def test_debugging_of_nans(self) -> None:
        """Lanes that are elsewhere may hold NaN; what a lane returns is told at its line."""
        with jax.debug_nans(True):
            assert wild.run(jnp.array([1.0, 4.0]), timeout=60).value.tolist() == [0.0, 2.0]
            with pytest.raises(FloatingPointError, match="PCB910"):
                wild.run(jnp.array([1.0, -4.0]), timeout=60)


@pcbatch.batch
def wild(x):
    n, y = 0, 0.0
    while n < 5:
        y = jnp.sqrt(x - 2.0 if x > 1.5 else 0.0 * x) if x > 0 else jnp.log(x)
        n += 1
    return y if x == 1.0 else jnp.sqrt(x)


class TestTime:
    """What never ends can be stopped under every policy and in every mode."""

    @pytest.mark.parametrize("schedule", ["auto", "earliest", "largest", "sweep", "drain"])
    @pytest.mark.parametrize("emitter", ["guard", "port"])
    def test_policies(self, schedule: str, emitter: str) -> None:
        f = replanned(endless, schedule=schedule, emitter=emitter)
        result = f.run(jnp.array([4, 3, 2]), timeout=0.05)
        assert result.status.tolist()[1] == Status.RUNNING

    @pytest.mark.parametrize("mode", [pcbatch.Dense(), pcbatch.Dense(spins=4), pcbatch.Few(2), pcbatch.Strips(2)])
    def test_modes(self, mode: Any) -> None:
        m = replanned(endless, modes=mode).start(jnp.array([4, 3, 2, 1, 5, 7, 8, 9])).advance(200)
        assert m.progress().trips == 200 and m.progress().running == 5

    def test_statuses_and_errors(self) -> None:
        numbers = jnp.array([4, 3, 2])
        endless.start(numbers).advance(100).result()  # compiles
        m = endless.start(numbers).advance(timeout=1.0)
        assert m.progress().finished == 2 and m.result().status.tolist() == [0, Status.RUNNING, 0]
        with pytest.raises(pcbatch.BatchRuntimeError, match="PCB905") as info:
            endless(numbers, timeout=1.0)
        assert "1 of 3 lanes" in str(info.value) and "1 (n=3)" in str(info.value)
        assert endless(numbers[::2], timeout=60).tolist() == [2, 1]

    @pytest.mark.parametrize("how", [{}, {"chunk": 4}, {"devices": 2}], ids=str)
    def test_map(self, how: Any) -> None:
        numbers = np.array([4, 3, 2, 8, 6, 2, 1, 0, 4, 10], np.int32)
        f = endless.with_options()
        f.map(numbers * 2, lanes=3, timeout=100, **how)  # compiles
        result = f.map(numbers, lanes=3, timeout=2.0, **how)
        expected = [Status.RUNNING if n % 2 else Status.OK for n in numbers]
        assert result.status.tolist() == expected
        assert [v for v, s in zip(result.value.tolist(), expected, strict=True) if not s] == [2, 1, 4, 3, 1, 0, 2, 5]

    def test_no_time_at_all(self) -> None:
        for how in ({}, {"lanes": 2}, {"lanes": 2, "chunk": 3}):
            result = collatz.map(NUMBERS, timeout=0.0, **how)
            assert set(result.status.tolist()) == {Status.RUNNING} and len(result.status) == 41
        some = collatz.map(iter(np.split(NUMBERS, [9, 20])), timeout=0.0)
        assert set(some.status.tolist()) == {Status.RUNNING}

    def test_parameters_of_these_names(self) -> None:
        @pcbatch.batch
        def until(timeout, progress):
            while timeout > 0:
                timeout -= progress
            return timeout

        assert until(timeout=jnp.array([4, 5]), progress=jnp.array([1, 2])).tolist() == [0, -1]


class TestInterrupts:
    @staticmethod
    def press(at: int) -> Callable[[int, int | None], None]:
        """Ctrl-C when so many reports have come."""
        told = 0

        def count(done: int, total: int | None) -> None:
            nonlocal told
            told += 1
            if told == at:
                signal.raise_signal(signal.SIGINT)

        return count

    @pytest.mark.parametrize("how", ["run", "advance", "map"])
    def test_a_machine_that_goes_on(self, how: str) -> None:
        f, numbers, press = endless.with_options(), np.array([4, 3, 2], np.int32), self.press(4)
        calls: dict[str, Callable[[], Any]] = {
            "run": lambda: f.run(numbers, progress=press),
            "advance": lambda: f.start(numbers).advance(progress=press),
            "map": lambda: f.map(numbers, lanes=2, progress=press),
        }
        with pytest.raises(pcbatch.Interrupted) as info:
            calls[how]()
        m = info.value.machine
        assert m is not None and not m.done and m.result().status.tolist() == [0, 3, 0]
        assert m.advance(100).progress().trips == m.progress().trips + 100
        assert isinstance(info.value, KeyboardInterrupt) and "2 of 3 done" in str(info.value)
        assert signal.getsignal(signal.SIGINT) is signal.default_int_handler

    def test_twice(self) -> None:
        """A second one does not wait for anything."""

        def press(done: int, total: int | None) -> None:
            signal.raise_signal(signal.SIGINT)
            signal.raise_signal(signal.SIGINT)

        with pytest.raises(KeyboardInterrupt) as info:
            endless.run(np.array([3], np.int32), progress=press)
        assert not isinstance(info.value, pcbatch.Interrupted)
        assert signal.getsignal(signal.SIGINT) is signal.default_int_handler

    def test_a_stream(self, tmp_path: Path) -> None:
        f, numbers = endless.with_options(), np.array([4, 3, 2, 6, 8, 10], np.int32)
        with pytest.raises(pcbatch.Interrupted, match="holds what is done") as info:
            f.map(numbers, lanes=2, chunk=3, save_to=tmp_path / "run", progress=self.press(6))
        assert info.value.machine is None
        result = f.map(numbers, lanes=2, chunk=3, save_to=tmp_path / "run", timeout=1.0)
        assert result.status.tolist() == [0, 3, 0, 0, 0, 0]

    def test_handlers_of_others(self) -> None:
        seen: list[int] = []
        old = signal.signal(signal.SIGINT, lambda number, _: seen.append(number))
        try:
            endless.run(np.array([3], np.int32), timeout=1.0, progress=self.press(3))
        finally:
            signal.signal(signal.SIGINT, old)
        assert seen == [signal.SIGINT]

    def test_other_threads(self) -> None:
        found: list[Any] = []
        thread = threading.Thread(target=lambda: found.append(collatz.run(NUMBERS, timeout=60)))
        thread.start()
        thread.join()
        assert found[0].value.tolist() == collatz(NUMBERS).tolist()


class TestCheckpoints:
    def test_going_on(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        path, expected = tmp_path / "run.npz", fib.run(jnp.arange(12))
        fib.start(jnp.arange(12))
        cut = fib.run(jnp.arange(12), save_to=path, every=0, timeout=0.0)
        assert set(cut.status.tolist()) == {Status.RUNNING}
        assert_same(fib.run(jnp.arange(12), save_to=path), expected)
        assert_same(fib.run(jnp.arange(12), save_to=path), expected)
        assert fib.load(path).done
        assert [p.name for p in tmp_path.iterdir()] == ["run.npz"]

    def test_a_call(self, tmp_path: Path) -> None:
        assert collatz(NUMBERS, save_to=tmp_path / "a").tolist() == collatz(NUMBERS).tolist()
        assert collatz(NUMBERS, save_to=str(tmp_path / "a")).tolist() == collatz(NUMBERS).tolist()

    @pytest.mark.full_only
    def test_the_old_name(self, tmp_path: Path) -> None:
        """`checkpoint=` is one letter from `checkpoints=`, and warns where the caller wrote it."""
        for use in (collatz, collatz.run, collatz.map):
            with pytest.warns(DeprecationWarning, match="`save_to=") as warned:
                use(NUMBERS, checkpoint=tmp_path / use.__name__)
            assert warned[0].filename == __file__
            assert (tmp_path / use.__name__).exists()
            with pytest.raises(pcbatch.UsageError, match="PCB440.*both given"):
                use(NUMBERS, checkpoint=tmp_path / "a", save_to=tmp_path / "b")

    def test_parameters_of_the_old_name(self) -> None:
        @pcbatch.batch
        def add(x: Any, checkpoint: Any) -> Any:
            return x + checkpoint

        for use in (add, lambda *args, **kwargs: add.map(*args, **kwargs).value):
            assert use(NUMBERS, checkpoint=NUMBERS).tolist() == (2 * NUMBERS).tolist()

    @pytest.mark.parametrize("how", ["arrays", "chunks", "iterator"])
    def test_map(self, how: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        """Cut off at every fourth look."""
        path, expected = tmp_path / "run", collatz.map(NUMBERS)
        for name, value in {"FIRST": 2, "FASTER": 1, "STRETCH": 0.0}.items():
            monkeypatch.setattr(host_loop, name, value)
        f = collatz.with_options()
        for _ in range(200):
            looks = 0

            def stop(done: int, total: int | None) -> None:
                nonlocal looks
                looks += 1
                if looks == 4:
                    raise RuntimeError("cut off")

            inputs = iter(np.split(NUMBERS, [5, 7, 30])) if how == "iterator" else NUMBERS
            chunk = {"arrays": None, "chunks": 9, "iterator": 8}[how]
            try:
                found = f.map(inputs, lanes=4, chunk=chunk, save_to=path, every=0, progress=stop)
                break
            except RuntimeError:
                continue
        assert np.asarray(found.value).tolist() == expected.value.tolist()
        assert set(np.asarray(found.status).tolist()) == {0}

    def test_other_settings_of_map(self, tmp_path: Path) -> None:
        collatz.map(NUMBERS, chunk=8, lanes=2, save_to=tmp_path / "run")
        for other in ({"chunk": 9, "lanes": 2}, {"chunk": 8, "lanes": 3}, {"chunk": 8, "lanes": 2, "devices": 2}):
            with pytest.raises(ValueError, match="PCB443"):
                collatz.map(NUMBERS, save_to=tmp_path / "run", **other)
        with pytest.raises(ValueError, match="PCB443"):
            collatz.map(NUMBERS[::-1].copy(), chunk=8, lanes=2, save_to=tmp_path / "run")
        with pytest.raises(ValueError, match="PCB443"):
            collatz.map(iter([NUMBERS[:8]]), chunk=8, lanes=2, save_to=tmp_path / "run")

    def test_results_of_pytrees_with_keys(self, tmp_path: Path) -> None:
        args = walks(30)
        cut = walk.map(*args, lanes=4, chunk=7, save_to=tmp_path / "run", timeout=0.0)
        assert set(cut.status.tolist()) == {Status.RUNNING}
        found = walk.map(*args, lanes=4, chunk=7, save_to=tmp_path / "run")
        assert_same_bits(found.value, walk.run(*args).value)


class TestFiles:
    @pytest.fixture
    def saved(self, tmp_path: Path) -> Path:
        fib.start(jnp.arange(12)).advance(20).save(tmp_path / "run.npz")
        return tmp_path / "run.npz"

    def test_numpy_reads_them(self, saved: Path) -> None:
        with saved.open("rb") as file, np.load(file, allow_pickle=False) as archive:
            assert archive["carry/pc"].shape == (12,) and archive["trips"] == 20
            assert all(archive[name].dtype != object for name in archive)

    def test_every_cut(self, saved: Path) -> None:
        whole = saved.read_bytes()
        for size in [*range(0, len(whole), len(whole) // 40), len(whole) - 1]:
            saved.write_bytes(whole[:size])
            with pytest.raises(ValueError, match="PCB442"):
                fib.load(saved)

    def test_every_flipped_bit_is_harmless_or_seen(self, saved: Path) -> None:
        whole, rng = saved.read_bytes(), np.random.default_rng(0)
        expected = fib.run(jnp.arange(12))
        seen = 0
        for place in rng.integers(0, len(whole), 150):
            changed = bytearray(whole)
            changed[place] ^= 1 << int(rng.integers(8))
            saved.write_bytes(changed)
            try:
                m = fib.load(saved)
            except pcbatch.PcbatchError as error:
                assert error.diagnostics[0].code == "PCB442"
                seen += 1
            else:
                assert_same(m.advance().result(), expected)  # some byte that no reader of archives looks at
        assert seen > 50

    def test_a_pickle_is_not_opened(self, tmp_path: Path) -> None:
        for name, write in {
            "a": lambda file: pickle.dump([1, 2], file),
            "b": lambda file: np.save(file, np.array([{}], object)),
            "c": lambda file: np.savez(file, pcbatch=np.array([{}], object)),
            "d": lambda file: np.savez(file, other=np.zeros(3)),
            "e": lambda file: np.save(file, np.zeros(3)),
        }.items():
            with (tmp_path / name).open("wb") as file:
                write(file)
            with pytest.raises(ValueError, match="PCB442"):
                fib.load(tmp_path / name)

    def test_constants_count(self, tmp_path: Path) -> None:
        def made(scale: float, table: Any) -> Any:
            @pcbatch.batch
            def f(n):
                y = 0.0
                while n > 0:
                    y, n = y + scale * table[n % 2], n - 1
                return y

            return f

        table = jnp.array([1.0, 2.0])
        made(0.5, table).start(jnp.arange(4)).save(tmp_path / "run")
        assert made(0.5, table).load(tmp_path / "run").advance().done
        for other in (made(0.25, table), made(0.5, table + 1), made(0.5, table).with_options(max_steps=9)):
            with pytest.raises(ValueError, match="PCB443"):
                other.load(tmp_path / "run")

    def test_sixty_four_bits(self, tmp_path: Path) -> None:
        with jax.enable_x64(True):
            m = walk64.start(jnp.linspace(0.1, 1, 4)).advance(3)
            m.save(tmp_path / "run")
            assert_same(walk64.load(tmp_path / "run").advance().result(), walk64.run(jnp.linspace(0.1, 1, 4)))
        with pytest.raises(ValueError, match="jax_enable_x64"):
            walk64.load(tmp_path / "run")

    def test_links_are_followed(self, tmp_path: Path) -> None:
        (tmp_path / "link").symlink_to(tmp_path / "file")
        fib.start(jnp.arange(3)).save(tmp_path / "link")
        assert (tmp_path / "link").is_symlink() and fib.load(tmp_path / "file").advance().done

    @pytest.mark.parametrize("path", [3, None, ".", "/proc/run.npz", "no/such/folder/run.npz"])
    def test_paths_that_are_none(self, path: Any) -> None:
        for use in (fib.start(jnp.arange(3)).save, fib.load, lambda p: fib.run(jnp.arange(3), save_to=p or ".")):
            with pytest.raises(ValueError, match="PCB442"):
                use(path)

    def test_static_arguments(self, tmp_path: Path) -> None:
        f = pcbatch.batch(powers, static_argnames=("kind", "op"))
        m = f.start(jnp.arange(4), {"b": jnp.ones(4), "a": [jnp.zeros(4)]}, kind="up")
        m.save(tmp_path / "run")
        assert f.load(tmp_path / "run").advance().result().value.tolist() == [0.0, 1.0, 2.0, 3.0]
        args = (jnp.arange(4), {"b": jnp.ones(4), "a": [jnp.zeros(4)]})
        f.start(*args, kind="up", op=jnp.negative).save(tmp_path / "op")
        with pytest.raises(ValueError, match="PCB443"):
            f.load(tmp_path / "op")
        shapes = jax.eval_shape(lambda *x: x, *args)
        again = f.load(tmp_path / "op", *shapes, kind="up", op=jnp.negative)
        assert again.advance().result().value.tolist() == [0.0, -1.0, -2.0, -3.0]

    def test_another_version(self, saved: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(pcbatch, "__version__", "99.0")
        with pytest.raises(ValueError, match=r"PCB443.*pcbatch 0"):
            fib.load(saved)
        monkeypatch.setattr("pcbatch.runs.checkpoint_file.FORMAT", 3)
        with pytest.raises(ValueError, match="PCB442.*format 2"):
            fib.load(saved)

    def test_writing_fails(self, saved: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        """The file that was there stays as it was."""
        before = saved.read_bytes()

        def full(*_: Any) -> None:
            raise OSError(28, "No space left on device")

        path = saved.with_name("checkpoint")
        monkeypatch.setattr("os.fsync", full)
        with pytest.warns(RuntimeWarning, match="no checkpoint could be written.*No space"):
            assert fib.run(jnp.arange(3), save_to=path).value.tolist() == [1, 1, 2]
        with pytest.raises(OSError, match="No space"):
            fib.start(jnp.arange(3)).save(saved)
        assert saved.read_bytes() == before


@pcbatch.batch
def walk64(x):
    n = 0
    while x < 1e3:
        x, n = x * 1.7 + 0.1, n + 1
    return x, n


def powers(n, tree, kind="down", op=None):
    y = tree["a"][0]
    while n > 0:
        y, n = y + (tree["b"] if kind == "up" else -tree["b"]), n - 1
    return y if op is None else op(y)


class TestMemory:
    def test_sizes(self) -> None:
        from pcbatch.diagnostics.byte_sizes import amount, bytes_of

        assert [bytes_of(t) for t in ("8GB", "512 MiB", "1.5k", "7", "2tb", "1 g")] == [
            8 * 10**9, 512 * 2**20, 1500, 7, 2 * 10**12, 10**9]  # fmt: skip
        assert [bytes_of(t) for t in ("", "GB", "-1", "1 XB", "nan")] == [None] * 5
        assert [amount(n) for n in (7, 1500, 10**8, 4.2e9, 3e12)] == ["7 bytes", "1.5 kB", "100 MB", "4.2 GB", "3.0 TB"]

    @pytest.mark.parametrize("limit", [0, -3, "much", 2.5, True, "0"])
    def test_limits_that_are_none(self, limit: Any) -> None:
        with pytest.raises(pcbatch.UsageError, match="PCB401"):
            pcbatch.batch(max_memory=limit)

    def test_the_sizes_are_those_of_the_state(self) -> None:
        """What is asked for is what the state takes, within the odd word for each lane."""
        for f, args in ((fib, (jnp.arange(50),)), (walk, walks(50)), (deep, (jnp.arange(50),))):
            m = f.start(*args)
            paused = m._paused
            assert paused is not None
            state = [x for name, x in paused.state.carry.items() if name not in PER_BLOCK]
            taken = sum(leaf.size * leaf.dtype.itemsize for leaf in state)
            said = paused.executable.memory.total(50, paused.depth)
            assert taken <= said <= taken + 16 * 50

    def test_refused_before_it_is_made(self) -> None:
        f = walk.with_options(max_memory="2kB")
        args = walks(600)
        for call in (f, f.run, f.map, f.start, jax.jit(f.run), lambda *a: f.run(*a, timeout=1)):
            with pytest.raises(MemoryError, match="PCB444") as info:
                call(*args)
            assert isinstance(info.value, pcbatch.PcbatchError) and "`x` f32[3]" in str(info.value)

    @pytest.mark.full_only
    def test_chunks(self) -> None:
        with pytest.raises(MemoryError, match="PCB444"):
            walk.with_options(max_memory="2kB").map(*walks(600), chunk=300)
        found = walk.with_options(max_memory="20kB").map(*walks(600), chunk=100, lanes=4)
        assert_same_bits(found.value, walk.run(*walks(600)).value)

    @pytest.mark.parametrize("how", [{}, {"lanes": 2}, {"lanes": 2, "chunk": 2}], ids=str)
    def test_stacks_stop(self, how: Any) -> None:
        f = deep.with_options(max_memory="10kB")
        numbers = np.array([3, 100_000, 12], np.int32)
        result = f.map(numbers, **how) if how else f.run(numbers)
        assert result.status.tolist() == [0, Status.STACK_FULL, 0]
        with pytest.raises(pcbatch.BatchRuntimeError, match="ran out of memory for their stacks") as info:
            f(numbers)
        assert "deepest lanes: 1 (n=100000" in str(info.value)
        executable = f.start(numbers)._paused.executable  # type: ignore[union-attr]
        assert executable.memory.total(3, executable.depth) < 10_000

    @pytest.mark.full_only
    def test_depth_that_others_needed_is_not_asked_for_more_lanes(self) -> None:
        f = deep.with_options(max_memory="40kB")
        assert f(jnp.array([900])).tolist() == [900]
        assert f(jnp.arange(60) % 30).tolist() == [k % 30 for k in range(60)]

    def test_the_limit_of_a_device(self) -> None:
        from pcbatch.runtime.costs import memory

        executable = collatz.start(NUMBERS)._paused.executable  # type: ignore[union-attr]
        limit = executable.memory.limit(memory.LaneSharding(None, 4))
        assert 2**24 < limit <= memory._physical() / 2


def test_pace() -> None:
    """The first run makes no trip, later ones as many as take the time that they should."""
    pace = host_loop.TripBudget()
    seen = []
    for _ in range(8):
        seen.append(pace.trips)
        pace.took(pace.trips, pace.trips * host_loop.STRETCH / 1500.5)
    assert seen == [0, 4, 64, 1024, 1500, 1500, 1500, 1500]
    pace.took(10, 20.0)
    assert pace.trips == 1, "a trip may take longer than that"


def test_a_run_of_many_trips_is_many_programs(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(host_loop, "STRETCH", 0.0)
    told: list[Any] = []
    f = replanned(collatz, schedule="earliest", unroll=1)
    assert f.run(NUMBERS, progress=lambda *report: told.append(report)).value.tolist() == collatz(NUMBERS).tolist()
    assert len(told) > 10


def test_more_trips_than_a_word_holds() -> None:
    from pcbatch.runtime.execute.state_arrays import trips_array

    assert int(trips_array(2**40)) == 2**40 and trips_array(7).dtype == np.int32


@pytest.mark.parametrize("transform", [jax.jit, jax.vmap, lambda g: jax.grad(lambda x: g(x).sum())])
def test_inside_of_transformations(transform: Any) -> None:
    def begun(x):
        return wild.start(jnp.atleast_1d(x)).advance().result().value

    with pytest.raises(pcbatch.UsageError, match="PCB441"):
        transform(begun)(jnp.ones(3) * 2)


@pytest.mark.parametrize("how", [{"timeout": 1}, {"progress": True}, {"save_to": "run.npz"}], ids=str)
def test_the_local_strategy(how: Any) -> None:
    f = collatz.with_options(strategy="local")
    with pytest.raises(pcbatch.UsageError, match="PCB415"):
        f.run(NUMBERS, **how)
