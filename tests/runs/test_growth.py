"""Lists that grow: runs in which a lane had no room are repeated with more."""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import pcbatch
from pcbatch import Status
from pcbatch.data.capacity import FullError, Room, capacity, next_capacities, using_capacity
from pcbatch.data.checks import require_room
from pcbatch.runtime.vm.prints import Journal
from tests.oracles.plans import replanned

pytestmark = [pytest.mark.share(3), pytest.mark.unsized]

FULL = int(Status.LIST_FULL)
NUMBERS = jnp.array([3, 40, 0, 70])


@pcbatch.batch
def below(n):
    """The numbers below n, one after the other."""
    found = []
    for k in range(n):
        found.append(k)
    return found


def fresh(**options: Any) -> Any:
    """The function without anything that was compiled or remembered."""
    return replanned(below, **options)


def capacities(f: Any) -> list[int]:
    return sorted(program.room.elements for program in f._programs.cache.values())


def plain(numbers: Any = NUMBERS) -> list[Any]:
    return [below.plain(int(n)) for n in numbers]


def test_next_capacities() -> None:
    assert next_capacities(32, 33, 2**24) == (128, 64)
    assert next_capacities(32, 1000, 2**24) == (1024,)
    assert next_capacities(32, 1000, 64) == (64,)
    assert next_capacities(64, 65, 64) == ()


def test_a_call_is_repeated_and_remembers() -> None:
    f = fresh()
    assert f(NUMBERS).tolist() == plain()
    assert capacities(f) == [32, 128]
    assert {room.elements for room in f._programs.rooms.values()} == {128}
    assert f(NUMBERS).tolist() == plain()  # from then on at once
    assert capacities(f) == [32, 128]


def test_a_call_with_room_compiles_once() -> None:
    f = fresh()
    assert f(jnp.array([3, 32])).tolist() == plain([3, 32])
    assert capacities(f) == [32]
    assert all(room.elements == 32 for room in f._programs.rooms.values())


@pytest.mark.together
def test_a_function_without_lists_has_one_program() -> None:
    f = pcbatch.batch(lambda n: n + 1, numbers="jax").with_options()
    assert f(NUMBERS).tolist() == [4, 41, 1, 71]
    assert jax.jit(f)(NUMBERS).tolist() == [4, 41, 1, 71]
    (program,) = f._programs.cache.values()
    assert not program.may_be_full
    assert not any(f._programs.rooms.values())
    layout = program.executable.machine.layout
    assert layout.nowhere == 7 * (layout.exit + 1)  # as before there were lists


class TestMaxLength:
    def test_a_lane_that_needs_more_fails(self) -> None:
        result = fresh(max_length=64).run(NUMBERS)
        assert result.status.tolist() == [0, 0, 0, FULL]
        assert result.value.tolist() == [*plain()[:3], None]

    def test_the_error_names_the_line_and_the_option(self) -> None:
        with pytest.raises(pcbatch.BatchRuntimeError) as info:
            fresh(max_length=50)(NUMBERS)
        (diagnostic,) = info.value.diagnostics
        assert diagnostic.code == "PCB906"
        assert diagnostic.title == "1 of 4 lanes need a list, dict or set of more than 64 elements (max_length=50)"
        assert diagnostic.primary is not None
        assert "max_length=128" in diagnostic.helps[0]

    def test_it_is_the_capacity_inside_jit(self) -> None:
        f = fresh(max_length=100)
        value = jax.jit(f)(NUMBERS)
        assert value.tolist() == plain()
        assert value.values.shape == (4, 128)

    def test_inside_jit_without_it_lists_do_not_grow(self) -> None:
        f = fresh(on_failure="warn")
        with pytest.warns(UserWarning, match="PCB906") as warned:
            value = jax.jit(f)(NUMBERS)
            jax.effects_barrier()
        assert value.tolist() == [plain()[0], None, [], None]
        assert "max_length=64" in str(warned[0].message)

    def test_ahead_of_time_too(self) -> None:
        compiled = fresh(max_length=100).lower(NUMBERS).compile()
        assert compiled(NUMBERS).tolist() == plain()
        with pytest.raises(pcbatch.BatchRuntimeError, match="PCB906"):
            fresh().lower(NUMBERS).compile()(NUMBERS)

    @pytest.mark.parametrize("value", [0, -1, 1.5, True])
    def test_it_is_checked(self, value: Any) -> None:
        with pytest.raises(pcbatch.UsageError, match="PCB401"):
            fresh(max_length=value)


def test_memory_ends_it() -> None:
    f = fresh(max_memory="2kB")
    result = f.run(NUMBERS)
    assert result.status.tolist() == [0, 0, 0, FULL]  # 64 elements fit, 128 do not
    with pytest.raises(pcbatch.BatchRuntimeError, match="max_memory") as info:
        f(NUMBERS)
    assert "may take 2.0 kB" in str(info.value)


def test_what_few_lanes_needed_is_forgotten_where_memory_is_short() -> None:
    f = fresh(max_memory="20kB")
    assert f(jnp.array([300])).lengths.tolist() == [300]
    assert f(jnp.arange(40)).tolist() == plain(range(40))


def needs(elements: int) -> int:
    require_room(elements, capacity())
    return capacity()


@pytest.mark.together
def test_a_size_known_while_compiling() -> None:
    @pcbatch.batch
    def f(n):
        return n + needs(200)

    assert f(jnp.array([1, 5])).tolist() == [257, 261]
    assert jax.jit(f)(jnp.array([1, 5])).tolist() == [257, 261]
    assert capacities(f) == [256]  # compiled for 32, found wanting, and kept under that number
    with pytest.raises(pcbatch.UsageError, match="max_length=16 is too small"):
        f.with_options(max_length=16)(jnp.array([1, 5]))


def test_full_while_compiling_is_no_exception_of_the_program() -> None:
    assert not issubclass(FullError, Exception)
    with using_capacity(Room(8)):
        pass


@pcbatch.batch
def talks(n):
    found = []
    for k in range(n):
        if k % 16 == 0:
            print("at", k)
        found.append(k)
    return found


@pytest.mark.parametrize("strategy", ["pc", "local"])
def test_nothing_is_printed_twice(capsys: pytest.CaptureFixture[str], strategy: str) -> None:
    value = talks.with_options(strategy=strategy)(jnp.array([3, 40]))
    assert value.lengths.tolist() == [3, 40]
    lines = capsys.readouterr().out.splitlines()
    assert sorted(lines) == ["[lane 0] at 0", "[lane 1] at 0", "[lane 1] at 16", "[lane 1] at 32"]


def test_a_journal_leaves_out_what_was_printed() -> None:
    journal = Journal()
    assert [journal.is_new(0), journal.is_new(0), journal.is_new(1)] == [True, True, True]
    journal.next_run()
    assert [journal.is_new(0), journal.is_new(1), journal.is_new(0), journal.is_new(0)] == [False, False, False, True]
    journal.next_run()
    assert [journal.is_new(0) for _ in range(4)] == [False, False, False, True]


def test_dicts_grow_and_failed_lanes_have_none() -> None:
    @pcbatch.batch
    def f(n):
        squares = {}
        for k in range(n):
            squares[k * k] = k
        assert n != 4
        return squares

    result = f.run(jnp.array([3, 4, 50]))
    assert result.status.tolist() == [0, int(Status.ASSERTION), 0]
    assert result.value.tolist() == [f.plain(3), None, f.plain(50)]
    with pytest.raises(ValueError, match="lane 1 has failed, and has no dict"):
        result.value[1]


class TestRuns:
    def test_strategy_local(self) -> None:
        assert fresh(strategy="local")(NUMBERS).tolist() == plain()

    def test_map(self) -> None:
        assert fresh().map(NUMBERS, lanes=2).value.tolist() == plain()

    def test_map_in_chunks(self) -> None:
        assert fresh().map(np.asarray(NUMBERS), lanes=2, chunk=2).value.tolist() == plain()

    @pytest.mark.full_only
    def test_map_over_an_iterator(self) -> None:
        f = fresh(stats=True)
        result = f.map(iter([np.array([3, 40]), np.array([0]), np.array([70])]), lanes=2)
        assert result.value.tolist() == plain()
        assert result.status.tolist() == [0, 0, 0, 0]
        assert result.stats.lanes == 4

    @pytest.mark.full_only
    def test_an_iterator_with_progress_has_a_fixed_capacity(self) -> None:
        chunks = [np.array([3, 40]), np.array([0, 70])]
        result = fresh().map(iter(chunks), progress=lambda *_: None)
        assert result.status.tolist() == [0, FULL, 0, FULL]
        result = fresh(max_length=128).map(iter(chunks), progress=lambda *_: None)
        assert result.value.tolist() == plain()

    def test_with_progress(self) -> None:
        seen: list[Any] = []
        assert fresh()(NUMBERS, progress=lambda *counts: seen.append(counts)).tolist() == plain()
        assert seen[-1] == (4, 4)

    def test_a_file_knows_its_capacity(self, tmp_path: Any) -> None:
        path = tmp_path / "run.npz"
        assert fresh()(NUMBERS, save_to=path).tolist() == plain()
        again = fresh()
        assert again(NUMBERS, save_to=path).tolist() == plain()
        assert again.load(path).result().value.tolist() == plain()

    @pytest.mark.full_only
    def test_chunks_in_a_file(self, tmp_path: Any) -> None:
        path = tmp_path / "run.npz"
        for _ in range(2):
            assert fresh().map(np.asarray(NUMBERS), chunk=2, save_to=path).value.tolist() == plain()

    def test_a_machine_begins_again(self) -> None:
        machine = fresh().start(NUMBERS)
        steps = 0
        while not machine.done:
            machine = machine.advance(20)
            steps += 1
            assert steps < 100
        assert machine.result().value.tolist() == plain()

    def test_a_machine_without_arguments_cannot(self, tmp_path: Any) -> None:
        path = tmp_path / "run.npz"
        fresh().start(NUMBERS).save(path)
        machine = fresh().load(path).advance()
        assert machine.done
        assert machine.result().status.tolist() == [0, FULL, 0, FULL]
        assert fresh().load(path, NUMBERS).advance().result().value.tolist() == plain()

    def test_profile(self) -> None:
        profile = fresh().profile(NUMBERS)
        assert profile.result.value.tolist() == plain()

    def test_donated_arguments_are_kept_for_the_repetition(self) -> None:
        f = fresh(donate_argnames="n")
        assert f(jnp.array([3, 40])).tolist() == plain([3, 40])

    @pytest.mark.full_only
    def test_in_vmap_and_grad(self) -> None:
        @pcbatch.batch(max_length=64, on_failure="ignore")
        def total(n, x):
            found = []
            for _ in range(n):
                found.append(x * x)
            result = 0.0
            for k in range(n):
                result += found[k]
            return result

        n, x = jnp.array([2, 40]), jnp.array([3.0, 0.5])
        assert jax.grad(lambda x: total(n, x).sum())(x).tolist() == [12.0, 40.0]
        assert jax.vmap(total)(jnp.stack([n, n]), jnp.stack([x, x])).tolist() == [[18.0, 10.0]] * 2
        many = jnp.array([2, 70])
        assert np.isnan(jax.jit(jax.grad(lambda x: total(many, x)[1]))(x)[1])
        with pytest.raises(pcbatch.BatchRuntimeError, match="PCB906"):
            jax.grad(lambda x: total(many, x)[1])(x)
        grows = total.with_options(max_length=None)
        assert jax.grad(lambda x: grows(many, x).sum())(x).tolist() == [12.0, 70.0]

    def test_on_two_devices(self) -> None:
        assert fresh()(NUMBERS, devices=2).tolist() == plain()
        mesh = jax.make_mesh((2,), ("x",), axis_types=(jax.sharding.AxisType.Auto,))
        f = jax.shard_map(fresh(max_length=100), mesh=mesh, in_specs=jax.P("x"), out_specs=jax.P("x"))
        assert f(NUMBERS).tolist() == plain()


@pcbatch.batch
def tripled(xs, n):
    """A list that is made of another one, and one that grows by n elements."""
    more = []
    for k in range(n):
        more.append(k)
    return [2 * x for x in xs] + xs + xs, more


class TestRoomOfArguments:
    """Lists made of others begin with the room of the lists among the arguments; results never depend on it."""

    @staticmethod
    def run(f: Any, lists: Any, *numbers: int) -> None:
        xs, n = pcbatch.ragged(lists), np.array(numbers, np.int32)
        made, more = f(xs, n)
        expected = [tripled.plain(x, int(k)) for x, k in zip(lists, numbers, strict=True)]
        assert list(zip(made.tolist(), more.tolist(), strict=True)) == expected

    @pytest.mark.parametrize(("longest", "room"), [(1, 8), (5, 8), (9, 16), (10, 16), (20, 32), (40, 32)])
    def test_it_is_that_of_the_longest_list_within_bounds(self, longest: int, room: int) -> None:
        f = pcbatch.batch(lambda xs: [x + 1 for x in xs])
        assert f(pcbatch.ragged([[0] * longest, []])).tolist() == [[1] * longest, []]
        assert min(capacities(f)) == room

    def test_lists_in_lists_count(self) -> None:
        f = pcbatch.batch(lambda rows: [[x + 1 for x in row] for row in rows])
        assert f(pcbatch.ragged([[[1] * 12, []], [[3]]])).tolist() == [[[2] * 12, []], [[4]]]
        assert capacities(f) == [16]

    def test_what_gets_its_elements_one_by_one_has_room_for_32(self) -> None:
        f = tripled.with_options()
        self.run(f, [[1, 2], []], 32, 5)
        assert capacities(f) == [8]
        self.run(f, [[1, 2], []], 33, 5)
        assert capacities(f) == [8, 128]

    def test_lists_in_lists_have_room_for_32(self) -> None:
        f = pcbatch.batch(lambda n: [[k] * 2 for k in range(n)] + [[]])
        assert f(np.array([31, 3])).tolist() == [[[k] * 2 for k in range(n)] + [[]] for n in (31, 3)]
        (program,) = f._programs.cache.values()
        assert {shape for v in program.stages.opt.vars.values() if len(shape := v.type.shape) > 1} == {(32, 2)}

        def rows(n):
            found = []
            for k in range(n):
                row = []
                for j in range(k):
                    row.append(j)
                found.append(row)
            return found

        f = pcbatch.batch(rows)
        assert f(np.array([4, 9])).tolist() == [rows(4), rows(9)]
        (program,) = f._programs.cache.values()
        assert (32, 32) in {v.type.shape for v in program.stages.opt.vars.values()}
        f(np.array([40, 9]))
        assert capacities(f) == [32, 64], "room of lists in lists is squared, so it doubles"

    def test_wrong_guesses_grow(self) -> None:
        f = tripled.with_options()
        self.run(f, [[1, 2, 3, 4], [5]], 3, 0)
        assert capacities(f) == [8, 32]
        self.run(f, [[1, 2, 3, 4], [5]], 3, 0)
        assert capacities(f) == [8, 32]
        self.run(f, [[1, 2, 3, 4], [5]], 65, 0)
        assert capacities(f) == [8, 32, 128]
        self.run(tripled.with_options(), [[1], [5]], 65, 0)  # at once to what a list of more than 32 gets

    def test_other_arguments_tell_nothing(self) -> None:
        f = pcbatch.batch(lambda text: [c for c in text if c != "a"])
        assert f(pcbatch.ragged(["ab", "c"])).tolist() == [["b"], ["c"]]
        assert capacities(f) == [32]

    def test_inside_jit_nothing_grows_so_room_is_that_of_the_option(self) -> None:
        xs, n = pcbatch.ragged([[1, 2, 3, 4], [5]]), np.array([3, 0], np.int32)
        for f in (jax.jit(tripled), tripled.lower(xs, n).compile()):
            assert f(xs, n)[0].tolist() == [[2, 4, 6, 8] + 2 * [1, 2, 3, 4], [10, 5, 5]]

    def test_max_length_means_what_it_says(self) -> None:
        xs, n = pcbatch.ragged([[1, 2, 3, 4], [1, 2, 3, 4, 5, 6], [5]]), np.array([3, 0, 17], np.int32)
        result = tripled.run(xs, n)
        assert result.status.tolist() == [0, 0, 0]
        result = tripled.with_options(max_length=16).run(xs, n)
        assert result.status.tolist() == [0, FULL, FULL]
        assert result.value[0].tolist()[0] == [2, 4, 6, 8] + 2 * [1, 2, 3, 4]

    def test_a_file_keeps_the_room(self, tmp_path: Any) -> None:
        xs, n = pcbatch.ragged([[1, 2, 3, 4], [5]]), np.array([20, 0], np.int32)
        f = tripled.with_options()
        begun = f.start(xs, n).advance(max_trips=3)
        begun.save(tmp_path / "run")
        ended = tripled.with_options().load(tmp_path / "run", xs, n).advance()
        while not ended.done:
            ended = ended.advance()
        assert [part.tolist() for part in ended.result().value] == [part.tolist() for part in f(xs, n)]
