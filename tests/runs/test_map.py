"""`f.map`: many inputs through few lanes give what a lane for each gives, bit for bit, however they come."""

from __future__ import annotations

import sys
import types
from collections.abc import Iterator
from typing import Any

import hypothesis.strategies as st
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import given, settings

import pcbatch
from pcbatch import Status
from pcbatch.api.map import regroup
from pcbatch.report.lane_failures import raise_failures
from pcbatch.runtime.costs import plan_modes
from pcbatch.runtime.execute import chunk_runner, executor, host_loop, queue_programs, queue_run
from pcbatch.runtime.execute.call_values import placed
from pcbatch.runtime.sharding.lane_sharding import LaneSharding
from tests.oracles.plans import replanned
from tests.programs import PROGRAMS, Program, select
from tests.programs.batched import collatz, countdown, deep, fragile, same, walk, walks
from tests.programs.compare import assert_same_bits

pytestmark = [pytest.mark.share(3), pytest.mark.promotion("standard")]


NUMBERS = np.random.default_rng(1).integers(1, 900, 101).astype(np.int32)


@pytest.fixture(scope="module")
def counts() -> Any:
    return collatz.run(NUMBERS)


@pytest.mark.together
class TestEveryProgram:
    """Three lanes, and chunks of four inputs, for seven."""

    @pytest.mark.share(20, 18)
    @pytest.mark.long
    @pytest.mark.parametrize("program", PROGRAMS, ids=lambda program: program.name)
    def test_fewer_lanes(self, program: Program) -> None:
        with program.mode():
            f, args = program.batched(), program.args(7)
            same(f.map(*args, lanes=3), f.run(*args))

    @pytest.mark.share(60)
    @pytest.mark.long
    @pytest.mark.parametrize("program", PROGRAMS[::4], ids=lambda program: program.name)
    def test_chunks(self, program: Program) -> None:
        with program.mode():
            f, args = program.batched(), program.args(7)
            run = f.run(*args)
            same(f.map(*args, lanes=2, chunk=4), run)
            if not isinstance(program.in_axes, dict):
                parts = (select(args, program.in_axes, slice(k, k + 2)) for k in range(0, 7, 2))
                same(f.map(parts, lanes=3), run)

    @pytest.mark.share(26)
    @pytest.mark.long
    @pytest.mark.parametrize("program", PROGRAMS[1::8], ids=lambda program: program.name)
    def test_inside_jit(self, program: Program) -> None:
        with program.mode():
            f, args = program.batched(max_depth=64), program.args(7)
            value, status = jax.jit(lambda *args: (lambda r: (r.value, r.status))(f.map(*args, lanes=3)))(*args)
            run = f.run(*args)
            assert_same_bits(status, run.status)
            jax.tree.map(lambda a, b: _assert_close(a, b, program.rtol), value, run.value)


def _assert_close(a: Any, b: Any, rtol: float) -> None:
    """Another program of XLA's may round otherwise."""
    if jnp.issubdtype(a.dtype, jax.dtypes.prng_key):
        a, b = jax.random.key_data(a), jax.random.key_data(b)
    np.testing.assert_allclose(a, b, rtol=rtol, atol=1e-6)


@pytest.mark.full_only
@given(st.data())
@settings(max_examples=25, deadline=None)
def test_any_lanes_and_chunks(data: st.DataObject) -> None:
    inputs = data.draw(st.sampled_from((1, 2, 30, 101)))
    lanes, chunk = data.draw(st.sampled_from((None, 1, 2, 7, 64, 200))), data.draw(st.sampled_from((None, 1, 7, 30)))
    numbers = NUMBERS[:inputs]
    mapped = collatz.map(numbers, lanes=lanes, chunk=chunk)
    assert mapped.value.tolist() == [_plain(int(n)) for n in numbers]


@pytest.mark.full_only
@given(st.lists(st.integers(0, 40), min_size=1, max_size=8), st.sampled_from((1, 3, 16)), st.sampled_from((None, 9)))
@settings(max_examples=20, deadline=None)
def test_any_sizes_of_an_iterator(sizes: list[int], lanes: int, chunk: int | None) -> None:
    borders = np.minimum(np.cumsum([0, *sizes]), len(NUMBERS))
    parts = (NUMBERS[a:b] for a, b in zip(borders[:-1], borders[1:], strict=True))
    mapped = collatz.map(parts, lanes=lanes, chunk=chunk)
    assert mapped.value.tolist() == [_plain(int(n)) for n in NUMBERS[: borders[-1]]]


def _plain(n: int) -> int:
    count = 0
    while n != 1:
        n, count = (n // 2 if n % 2 == 0 else 3 * n + 1), count + 1
    return count


class TestGrowth:
    """Stacks grow between programs; in few lanes, at the end, in chunks."""

    numbers = np.array([3, 200, 0, 1, 70, 130, 5, 400, 2, 90], np.int32)

    @pytest.mark.full_only
    @pytest.mark.parametrize("how", [{"lanes": 2}, {"lanes": 2, "chunk": 3}, {"lanes": 100}, {"chunk": 4}], ids=str)
    def test_deep_recursion(self, how: Any) -> None:
        fresh = deep.with_options()
        assert fresh.map(self.numbers, **how).value.tolist() == self.numbers.tolist()
        assert int(fresh.map(self.numbers, **how).stats.trips) > 0, "a second time, with the stacks of the first"

    @pytest.mark.full_only
    @pytest.mark.parametrize("told", [False, True])
    @pytest.mark.parametrize("last", [100, 40, 5])
    def test_in_every_width(self, last: int, told: bool) -> None:
        """So many lanes live when one has no room: the machine has narrowed not at all, once, or twice."""
        numbers = np.array([3] * 300 + [50 + k for k in range(last)], np.int32)
        mapped = deep.with_options().map(numbers, lanes=128, progress=(lambda *_: None) if told else None)
        assert mapped.value.tolist() == numbers.tolist()

    @pytest.mark.full_only
    @pytest.mark.parametrize("how", [{"lanes": 64}, {"lanes": 64, "chunk": 20}], ids=str)
    def test_what_may_not_grow_ends_in_every_width(self, how: Any, monkeypatch: pytest.MonkeyPatch) -> None:
        """Few lanes live when the limit is met: those that wait for room are not forgotten when the machine narrows."""
        monkeypatch.setattr("pcbatch.runtime.costs.memory.MachineMemory.has_room", lambda *_: False)
        numbers = np.arange(80, dtype=np.int32)
        mapped = deep.with_options().map(numbers, **how)
        same(mapped, deep.with_options().run(numbers))
        assert set(mapped.status.tolist()) == {Status.OK, Status.STACK_FULL}

    @pytest.mark.full_only
    def test_a_limit_of_the_user(self) -> None:
        f = deep.with_options(max_depth=50)
        same(f.map(self.numbers, lanes=3), f.run(self.numbers))
        same(f.map(self.numbers, lanes=3, chunk=3), f.run(self.numbers))


class TestFailures:
    numbers = np.array([1, 5, 3, -2, 12, 5, 13, 2, 30, 11, -1, 4], np.int32)

    @pytest.mark.parametrize("how", [{"lanes": 2}, {"lanes": 5, "chunk": 3}, {"lanes": 12}], ids=str)
    def test_statuses(self, how: Any) -> None:
        """Steps are counted anew for each input, and a lane that has failed takes the next."""
        mapped = fragile.map(self.numbers, **how)
        same(mapped, fragile.run(self.numbers))
        assert mapped.status.tolist() == [0, 4, 0, 2, 5, 4, 5, 0, 5, 0, 2, 0]

    @pytest.mark.parametrize("chunk", [None, 5])
    def test_all_that_a_report_needs(self, chunk: int | None) -> None:
        """Where each stopped, how deep, and what its message shows."""
        f = pcbatch.batch(_messages, max_depth=4)
        numbers = np.arange(1, 12)
        compiled, args = f._compiled((numbers,), {})
        outcomes = [compiled.execute(args)]
        if chunk is None:
            outcomes.append(compiled.stream(args, 3))
        else:
            flow = chunk_runner.ChunkPlan(chunk, len(numbers), 3)

            def pieces() -> Iterator[chunk_runner.Chunk]:
                return regroup(iter([(compiled.mapped(compiled.args(args)), len(numbers))]), chunk)

            outcomes.append(compiled.stream_chunks(args, pieces, flow, None))
        reports = []
        for outcome in outcomes:
            with pytest.raises(pcbatch.BatchRuntimeError) as error:
                raise_failures("f", compiled, outcome, args)
            reports.append([line for line in str(error.value).splitlines() if "trips" not in line])
        assert reports[0] == reports[1]
        assert_same_bits(outcomes[0].depths, jnp.asarray(outcomes[1].depths))

    @pytest.mark.full_only
    def test_statistics_add_up(self) -> None:
        for how in ({"lanes": 3}, {"lanes": 3, "chunk": 4}):
            stats = fragile.map(self.numbers, **how).stats
            assert stats.lanes == len(self.numbers)
            assert sum(b.active for b in stats.blocks) == sum(b.active for b in fragile.run(self.numbers).stats.blocks)
            assert 0 < stats.utilisation("count < n") <= 1


def _messages(n):
    if n % 3 == 0:
        raise ValueError(f"{n} is a multiple of three")
    assert n != 4
    return _down(n)


@pcbatch.batch
def _down(n):
    return 0 if n == 0 else _down(n - 1) + 1


class TestStructures:
    @pytest.mark.full_only
    @pytest.mark.parametrize("how", [{}, {"chunk": 8}], ids=str)
    def test_keys_shared_arguments_and_axes(self, how: Any) -> None:
        args = walks(30)
        mapped = walk.map(*args, lanes=4, **how)
        same(mapped, walk.run(*args))
        assert jnp.issubdtype(mapped.value[0].key.dtype, jax.dtypes.prng_key)

    @pytest.mark.full_only
    def test_chunks_are_arrays_of_numpy(self) -> None:
        assert type(collatz.map(NUMBERS, chunk=20).value) is np.ndarray
        assert isinstance(collatz.map(NUMBERS).value, jax.Array)

    @pytest.mark.share(6)
    @pytest.mark.parametrize("chunk", [None, 2])
    @pytest.mark.parametrize("inputs", [0, 1])
    def test_none_and_one(self, inputs: int, chunk: int | None) -> None:
        mapped = collatz.map(NUMBERS[:inputs], lanes=50, chunk=chunk, progress=lambda *_: None)
        assert mapped.value.shape == mapped.status.shape == (inputs,) and mapped.value.dtype == np.int32
        empty = collatz.map(iter([NUMBERS[:0], NUMBERS[:inputs]]))
        assert_same_bits(jnp.asarray(empty.value), jnp.asarray(mapped.value))

    def test_a_method(self) -> None:
        class Adder:
            def __init__(self, n):
                self.n = n

            @pcbatch.batch
            def up(self, x):
                while x < self.n:
                    x += 1
                return x

        numbers = np.arange(9)
        assert Adder(5).up.map(numbers, lanes=2).value.tolist() == np.maximum(numbers, 5).tolist()
        assert Adder(5).up.map(iter([numbers]), lanes=2).value.tolist() == np.maximum(numbers, 5).tolist()

    def test_a_large_array_comes_in_chunks_by_itself(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr("pcbatch.api.map.AT_ONCE", 200)
        monkeypatch.setattr("pcbatch.api.map.TRANSFER", 80)
        mapped = collatz.map(NUMBERS)
        assert type(mapped.value) is np.ndarray
        assert mapped.value.tolist() == [_plain(int(n)) for n in NUMBERS]
        assert isinstance(collatz.map(jnp.asarray(NUMBERS)).value, jax.Array), "it is on the device already"

    @pytest.mark.full_only
    def test_doubles_become_what_jax_has(self) -> None:
        f = pcbatch.batch(lambda_half)
        xs = np.linspace(1, 50, 20)
        same(f.map(xs, lanes=3, chunk=6), f.run(xs))
        with jax.enable_x64(True):
            assert f.map(xs, lanes=3, chunk=6).value.dtype == np.float64
            same(f.map(xs, lanes=3, chunk=6), f.run(xs))

    @pytest.mark.full_only
    def test_shared_by_keyword_beside_an_iterator(self) -> None:
        f = pcbatch.batch(lambda_power, in_axes={"n": None})
        xs = np.arange(6, dtype=np.float32)
        same(f.map(iter([xs[:4], xs[4:]]), n=3), f.run(xs, n=3))

    def test_an_iterator_may_use_its_buffer_again(self) -> None:
        def parts() -> Iterator[np.ndarray]:
            buffer = np.empty(8, np.int32)
            for k in range(0, 96, 8):
                buffer[:] = NUMBERS[k : k + 8]
                yield buffer
                buffer[:] = 1

        assert collatz.map(parts(), lanes=3, chunk=8).value.tolist() == [_plain(int(n)) for n in NUMBERS[:96]]


def down(x):
    while x > 0:
        x = x - 1
    return x


def beyond(x, limits):
    while jnp.any(x < limits):
        x = x * 2
    return x


def lambda_half(x):
    while x > 1:
        x = x * 0.77
    return x


def lambda_power(x, n):
    y = 1.0
    while n > 0:
        y *= x
        n -= 1
    return y


class TestProgress:
    @pytest.mark.parametrize("how", [{"lanes": 2}, {"lanes": 2, "chunk": 9}, {"chunk": 200}], ids=str)
    def test_reports(self, how: Any) -> None:
        told: list[tuple[int, int | None]] = []
        collatz.map(NUMBERS, progress=lambda done, total: told.append((done, total)), **how)
        assert told == sorted(told) and told[-1] == (101, 101) and len(told) > 2
        assert {total for _, total in told} == {101}

    @pytest.mark.parametrize("chunk", [None, 9])
    def test_what_runs_is_not_done(self, chunk: int | None, monkeypatch: pytest.MonkeyPatch) -> None:
        for name, value in {"FIRST": 1, "FASTER": 1, "STRETCH": 0.0}.items():  # a look after every trip
            monkeypatch.setattr(host_loop, name, value)
        told: list[int] = []
        collatz.with_options().map(NUMBERS, lanes=4, chunk=chunk, progress=lambda done, _: told.append(done))
        assert told[0] == 0 and max(told[:3]) < 4, "four lanes have begun, and not all have ended"
        assert told == sorted(told) and len(set(told)) > 20

    def test_of_an_iterator(self) -> None:
        told: list[tuple[int, int | None]] = []
        collatz.map(iter(np.split(NUMBERS, [40, 80])), progress=lambda *report: told.append(report))
        assert told[-1] == (101, 101) and told[0][1] is None

    @pytest.mark.full_only
    def test_a_bar(self, monkeypatch: pytest.MonkeyPatch) -> None:
        bars: list[Any] = []

        class Bar:
            def __init__(self, **_: Any) -> None:
                self.n, self.total, self.closed = 0, None, False
                bars.append(self)

            def __enter__(self) -> Bar:
                return self

            def __exit__(self, *_: object) -> None:
                self.closed = True

            def update(self, step: int) -> None:
                self.n += step

            def set_postfix(self, **_: Any) -> None:
                pass

            def refresh(self) -> None:
                pass

        fake = types.ModuleType("tqdm.auto")
        fake.tqdm = Bar  # type: ignore[attr-defined]
        monkeypatch.setitem(sys.modules, "tqdm", types.ModuleType("tqdm"))
        monkeypatch.setitem(sys.modules, "tqdm.auto", fake)
        collatz.map(NUMBERS, progress=True)
        assert [(bar.n, bar.total, bar.closed) for bar in bars] == [(101, 101, True)]

    def test_no_bar(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setitem(sys.modules, "tqdm.auto", None)
        with pytest.raises(pcbatch.UsageError, match="pip install tqdm"):
            collatz.map(NUMBERS, progress=True)

    def test_what_it_raises_comes_through(self) -> None:
        def stop(done: int, total: int | None) -> None:
            raise KeyError(done)

        with pytest.raises(KeyError):
            collatz.map(NUMBERS, progress=stop)


class TestPrograms:
    """What is compiled, and what is copied."""

    def test_chunks_compile_once(self) -> None:
        f = collatz.with_options()
        f.map(NUMBERS[:90], lanes=8, chunk=30)
        executable = f._compiled((NUMBERS,), {})[0].executable
        before = {name: jitted._cache_size() for name, jitted in executable.programs}
        f.map(NUMBERS, lanes=8, chunk=30)
        f.map(iter(np.split(NUMBERS, [3, 50, 50])), lanes=8, chunk=30)
        assert {name: jitted._cache_size() for name, jitted in executable.programs} == before
        assert set(before.values()) == {1}

    def test_buffers_are_given_away(self, monkeypatch: pytest.MonkeyPatch) -> None:
        """Each run goes on in the buffers of the last; what the caller has given stays as it is."""
        taken: list[Any] = []
        jitted = executor.PcExecutable.jitted

        def spy(self: Any, program: Any, lanes: int) -> Any:
            def call(*args: Any, **static: Any) -> Any:
                out = jitted(self, program, lanes)(*args, **static)
                if program is queue_programs.run_queue:
                    taken.append(args[0])
                return out

            return call

        monkeypatch.setattr(executor.PcExecutable, "jitted", spy)
        f = pcbatch.batch(beyond, in_axes=(0, None))
        xs, limits = jnp.arange(1.0, 2001.0), jnp.array([3.0, 50.0])
        f.map(xs, limits, lanes=8, progress=lambda *_: None)
        assert len(taken) > 2
        assert all(leaf.is_deleted() for q in taken for leaf in (*q.out.values(), *q.state.carry.values()))
        assert not xs.is_deleted() and not limits.is_deleted()

    def test_results_are_not_copied_between_runs(self) -> None:
        f = collatz.with_options()
        compiled, args = f._compiled((jnp.arange(1, 5001),), {})
        executable = compiled.executable
        sharding = LaneSharding(None, 5000)
        given = placed(executable, compiled.args(args), sharding)
        begun = queue_run.QueueRun.before(executable, sharding, 16, given).state
        run = executable.jitted(queue_programs.run_queue, 16)
        control = (np.int32(0), np.int32(5), np.bool_(False))
        memory = run.lower(*begun, *control, spread=sharding, grows=False).compile().memory_analysis()
        results = sum(leaf.nbytes for leaf in begun.queue.out.values())
        assert memory.alias_size_in_bytes >= results and memory.temp_size_in_bytes < results

    def test_lanes_are_busy(self) -> None:
        """Runs of 100 and of 1: waiting for the longest of each four would leave three of four lanes idle."""
        numbers = np.tile(np.array([100, 1, 1, 1], np.float32), 25)
        stats = pcbatch.batch(down, stats=True).map(numbers, lanes=4).stats
        assert stats.utilisation("x - 1") > 0.5

    def test_a_call_with_many_inputs_is_a_map(self) -> None:
        f, numbers = replanned(collatz, emitter="guard"), np.resize(NUMBERS, plan_modes.WIDEST + 1)
        assert f(numbers).tolist() == [_plain(int(n)) for n in numbers]
        assert {name for name, _ in f._compiled((NUMBERS,), {})[0].executable.programs} == {"run_to_the_end"}


class TestPrinting:
    def lines(self, capfd: Any) -> list[str]:
        jax.effects_barrier()
        return sorted(capfd.readouterr().out.splitlines())

    @pytest.mark.parametrize("how", [{"lanes": 2}, {"lanes": 3, "chunk": 4}, {"lanes": 2, "chunk": 1}, {}], ids=str)
    def test_inputs_print_under_their_own_numbers(self, how: Any, capfd: Any) -> None:
        numbers = np.array([2, 0, 3, 1, 1, 4, 0, 2, 5], np.int32)
        countdown.map(numbers, **how)
        expected = sorted(f"[lane {k}] {n} left" for k, top in enumerate(numbers) for n in range(1, top + 1))
        assert self.lines(capfd) == expected

    def test_inside_jit(self, capfd: Any) -> None:
        jax.jit(lambda ns: countdown.map(ns, lanes=2).value)(jnp.array([1, 1, 1]))
        assert self.lines(capfd) == [f"[lane {k}] 1 left" for k in range(3)]

    def test_in_narrow_machines(self, capfd: Any) -> None:
        """The last lane goes on alone, and once."""
        numbers = np.where(np.arange(64) == 63, 9, 1)
        countdown.map(numbers, lanes=64)
        expected = [f"[lane {k}] 1 left" for k in range(64)] + [f"[lane 63] {n} left" for n in range(2, 10)]
        assert self.lines(capfd) == sorted(expected)


class TestRefusals:
    @pytest.mark.parametrize("lanes", [0, -1, 2.0, True, "4"])
    def test_lanes(self, lanes: Any) -> None:
        with pytest.raises(pcbatch.UsageError, match="PCB417"):
            collatz.map(NUMBERS, lanes=lanes)

    def test_scalars(self) -> None:
        with pytest.raises(pcbatch.UsageError, match="PCB406"):
            collatz.map(3)

    def test_none_of_the_strategy_local(self) -> None:
        with pytest.raises(pcbatch.UsageError, match="PCB415"):
            collatz.with_options(strategy="local").map(NUMBERS[:0])

    def test_what_an_iterator_raises_comes_through(self) -> None:
        def parts() -> Iterator[np.ndarray]:
            yield NUMBERS
            raise OSError("gone")

        with pytest.raises(OSError, match="gone"):
            collatz.map(parts(), lanes=4)

    @pytest.mark.full_only
    def test_looking_for_nan(self) -> None:
        f = pcbatch.batch(lambda_log)
        xs = np.array([4, 3, -1, 2], np.float32)
        with jax.debug_nans(True):
            with pytest.raises(FloatingPointError, match="lane 2"):
                f.map(iter([xs]), lanes=2)
            assert f.map(iter([xs[:2], xs[3:]]), lanes=2).value.shape == (3,)


def lambda_log(x):
    while x > 3.5:
        x -= 1
    return jnp.log(x)


@pcbatch.batch
def halvings(n):
    count = 0
    while n > 1:
        n, count = n // 2, count + 1
    return count


@pcbatch.batch
def heavy(n, table):
    while n > 1:
        n, table = n // 2, table + n
    return table


class TestWidth:
    """The number of lanes where the call names none."""

    @pytest.mark.parametrize(("inputs", "lanes"), [(100, 100), (5000, 512), (12287, 512), (12288, 768), (50000, 768)])
    def test_by_inputs(self, inputs: int, lanes: int) -> None:
        plan = halvings.explain_schedule(jax.ShapeDtypeStruct((inputs,), "int32"))
        assert plan.lanes == (lanes if inputs > 100 else inputs)
        assert plan.map_lanes == max(lanes, 512)

    def test_of_lanes_with_much_state(self) -> None:
        """A wider machine of those takes memory, and gains nothing."""
        shapes = jax.ShapeDtypeStruct((20_000,), "int32"), jax.ShapeDtypeStruct((20_000, 4096), "int32")
        assert heavy.explain_schedule(*shapes).map_lanes == 512

    def test_many_inputs(self) -> None:
        numbers = np.arange(1, 12_301, dtype=np.int32)
        expected = [int(n).bit_length() - 1 for n in numbers]
        assert halvings.map(numbers).value.tolist() == expected
        assert halvings.map(numbers, progress=lambda *_: None).value.tolist() == expected
        assert halvings.map(numbers[:0], progress=lambda *_: None).value.tolist() == []
