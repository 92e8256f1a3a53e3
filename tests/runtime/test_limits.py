"""Running: failures that stay in their lane, growth, limits, lane independence, junk that must not matter."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import pcbatch
from pcbatch import BatchRuntimeError, Status
from pcbatch.runtime import emit
from pcbatch.runtime.lowering_platform import lowered_for
from tests.oracles.interpret_stack import interpret_stack
from tests.programs import REGISTRY, select
from tests.programs.classics import fib
from tests.programs.compare import assert_same_bits
from tests.programs.recursion import triangle

pytestmark = [pytest.mark.share(3), pytest.mark.older_emitters]

OK, STACK_FULL, STEP_LIMIT = int(Status.OK), int(Status.STACK_FULL), int(Status.STEP_LIMIT)


def i32(*values: int) -> np.ndarray:
    """A vector of int32."""
    return np.array(values, np.int32)


def sum_to(n):
    if n <= 0:
        return 0
    return n + sum_to(n - 1)


def spin(n):
    while n > 0:
        n = n + 1 if n > 100 else n - 1
    return n


def there_and_back(n):
    m = 2 * n
    while n > 0:
        n = n - 1
    while m > 0:
        m = m - 1
    return m


class TestStackFull:
    """A lane that needs more depth than it has."""

    def test_only_the_deep_lanes_fail(self) -> None:
        batched = pcbatch.batch(sum_to, max_depth=10)
        result = batched.run(i32(3, 50, 5, 2000, 0))
        assert np.asarray(result.status).tolist() == [OK, STACK_FULL, OK, STACK_FULL, OK]
        assert np.asarray(result.value)[[0, 2, 4]].tolist() == [6, 15, 0]

    def test_status_is_one_int32_per_lane(self) -> None:
        status = pcbatch.batch(sum_to).run(i32(1, 2, 3)).status
        assert status.shape == (3,) and status.dtype == jnp.int32

    @pytest.mark.parametrize("emitter", ["guard", "port"])
    @pytest.mark.parametrize("schedule", ["earliest", "largest", "sweep"])
    def test_with_every_emitter_and_schedule(self, emitter: str, schedule: str) -> None:
        batched = pcbatch.batch(fib, max_depth=4, plan=pcbatch.Plan(emitter=emitter, schedule=schedule))
        result = batched.run(i32(3, 9, 4, 20))
        assert np.asarray(result.status).tolist() == [OK, STACK_FULL, OK, STACK_FULL]
        assert np.asarray(result.value)[[0, 2]].tolist() == [3, 5]

    def test_the_limit_is_exact(self) -> None:
        """A lane may have as many open frames as `max_depth` says, and not one more."""
        program = pcbatch.batch(sum_to).lower(i32(0)).stages.opt
        frames = [interpret_stack(program, [jnp.int32(n)])[1].max_depth for n in range(8)]
        assert frames == [0, 0, 1, 2, 3, 4, 5, 6]  # the last call returns at once and needs none
        for depth in range(1, 9):
            result = pcbatch.batch(sum_to, max_depth=depth).run(i32(*range(8)))
            fits = [needed <= depth for needed in frames]
            assert np.asarray(result.status).tolist() == [OK if fit else STACK_FULL for fit in fits]
            sums = [n * (n + 1) // 2 if fit else np.iinfo(np.int32).min for n, fit in enumerate(fits)]
            assert np.asarray(result.value).tolist() == sums

    def test_failed_lanes_give_no_numbers(self) -> None:
        def powers(n, x):
            if n <= 0:
                return x, n, True, x > 0
            y, m, _, positive = powers(n - 1, x * 2)
            return y, m + n, positive, False

        result = pcbatch.batch(powers, max_depth=3).run(i32(2, 9), np.ones(2, np.float32))
        y, m, flag, other = (np.asarray(part) for part in result.value)
        assert np.asarray(result.status).tolist() == [OK, STACK_FULL]
        assert y[0] == 4 and np.isnan(y[1]) and m.tolist() == [3, np.iinfo(np.int32).min]
        assert flag.tolist() == [False, False] and other.tolist() == [False, False]

    def test_the_call_raises_and_names_the_lanes(self) -> None:
        batched = pcbatch.batch(sum_to, max_depth=10)
        with pytest.raises(BatchRuntimeError) as info:
            batched(i32(3, 50, 5, 2000))
        (diagnostic,) = info.value.diagnostics
        assert diagnostic.code == "PCB901"
        text = str(info.value)
        assert "2 of 4 lanes" in text and "1" in text and "3" in text
        assert "max_depth" in text

    def test_inside_jit_nothing_is_raised(self) -> None:
        batched = pcbatch.batch(sum_to, max_depth=10)
        result = jax.jit(batched.run)(i32(3, 50))
        assert np.asarray(result.status).tolist() == [OK, STACK_FULL]
        value = jax.jit(batched)(i32(3, 4))
        assert np.asarray(value).tolist() == [6, 10]


class TestGrowth:
    """Outside jit the stacks get as deep as they must."""

    @pytest.mark.full_only
    def test_deep_recursion(self) -> None:
        values = pcbatch.batch(sum_to)(i32(3000, 2, 100, 0))
        assert np.asarray(values).tolist() == [4501500, 3, 5050, 0]

    def test_growth_keeps_what_was_done(self) -> None:
        """Lanes that had finished, and frames that were pushed, survive a growth."""
        program = REGISTRY["local_survives_call"]
        args = (np.arange(14, dtype=np.int32),)
        assert_same_bits(program.batched()(*args), program.batched(max_depth=64)(*args))

    def test_deep_recursion_after_shallow(self) -> None:
        batched = pcbatch.batch(sum_to)
        for n in (5, 700, 5, 1500):
            assert int(batched(i32(n, 1))[0]) == n * (n + 1) // 2


class TestStepLimit:
    """A lane that never ends."""

    @pytest.mark.parametrize("schedule", ["earliest", "largest", "sweep"])
    def test_the_others_finish(self, schedule: str) -> None:
        batched = pcbatch.batch(spin, max_steps=2000, plan=pcbatch.Plan(schedule=schedule))
        result = batched.run(i32(4, 500, 0, 9))
        assert np.asarray(result.status).tolist() == [OK, STEP_LIMIT, OK, OK]
        assert np.asarray(result.value)[[0, 2, 3]].tolist() == [0, 0, 0]

    @pytest.mark.parametrize("emitter", ["guard", "port"])
    def test_the_limit_is_exact(self, emitter: str) -> None:
        """A lane may run as many blocks as `max_steps` says, also while others are in another loop."""
        batched = pcbatch.batch(there_and_back, plan=pcbatch.Plan(emitter=emitter, unroll=1))
        lanes = i32(0, 3, 1, 40, 7)
        program = batched.lower(lanes).stages.opt
        steps = [sum(interpret_stack(program, [n])[1].blocks.values()) for n in lanes]
        for limit in (1, steps[1] - 1, steps[1], steps[1] + 1, steps[3]):
            status = batched.with_options(max_steps=limit).run(lanes).status
            assert np.asarray(status).tolist() == [OK if n <= limit else STEP_LIMIT for n in steps]

    def test_the_call_raises(self) -> None:
        batched = pcbatch.batch(spin, max_steps=500)
        with pytest.raises(BatchRuntimeError) as info:
            batched(i32(4, 500, 0))
        (diagnostic,) = info.value.diagnostics
        assert diagnostic.code == "PCB902"
        assert "1 of 3 lanes" in str(info.value)
        assert "max_steps" in str(info.value)

    def test_infinite_recursion_without_depth_limit_is_stopped(self) -> None:
        def endless(n):
            if n == 0:
                return 0
            return endless(n) + 1

        result = pcbatch.batch(endless, max_steps=3000).run(i32(0, 1))
        assert int(result.status[0]) == OK and int(result.value[0]) == 0
        assert int(result.status[1]) in (STEP_LIMIT, STACK_FULL)

    def test_enough_steps(self) -> None:
        result = pcbatch.batch(spin, max_steps=2000).run(i32(4, 9))
        assert np.asarray(result.status).tolist() == [OK, OK]

    def test_trips_are_counted(self) -> None:
        few = int(pcbatch.batch(spin, plan=pcbatch.Plan(modes=pcbatch.Dense())).run(i32(2)).stats.trips)
        many = int(pcbatch.batch(spin, plan=pcbatch.Plan(modes=pcbatch.Dense())).run(i32(40)).stats.trips)
        assert 0 < few < many


class TestLaneIndependence:
    """No lane sees another."""

    @pytest.mark.parametrize("name", ["fib", "random_tree", "newton_sqrt", "pea_nuts", "array_through_recursion"])
    def test_permuting_the_other_lanes_changes_nothing(self, name: str) -> None:
        program = REGISTRY[name]
        batched = program.batched()
        order = np.random.default_rng(1).permutation(16)
        args = program.args(16)
        straight = batched(*args)
        permuted = batched(*select(args, program.in_axes, order))
        assert_same_bits(jax.tree.map(lambda leaf: leaf[order], straight), permuted)

    @pytest.mark.parametrize("emitter", ["guard", "port"])
    def test_nan_stays_in_its_lane(self, emitter: str) -> None:
        def smooth(x, n):
            while n > 0:
                x = x / jnp.sum(jnp.abs(x)) + 0.1
                n -= 1
            return x

        batched = pcbatch.batch(smooth, plan=pcbatch.Plan(emitter=emitter))
        x = np.random.default_rng(0).uniform(1, 2, (6, 3)).astype(np.float32)
        n = i32(3, 1, 4, 0, 2, 5)
        clean = np.asarray(batched(x, n))
        x[2] = np.nan
        dirty = np.asarray(batched(x, n))
        others = [0, 1, 3, 4, 5]
        assert_same_bits(clean[others], dirty[others])
        assert np.isnan(dirty[2]).all()

    def test_failed_lanes_do_not_change_the_others(self) -> None:
        batched = pcbatch.batch(fib, max_depth=6)
        alone = batched.run(i32(3, 5)).value
        beside = batched.run(i32(3, 30, 5, 40)).value
        assert_same_bits(np.asarray(alone), np.asarray(beside)[[0, 2]])


class TestJunk:
    """Blocks also run on lanes that did not ask for it; nobody may notice."""

    @pytest.fixture
    def debug_nans(self):
        with jax.debug_nans(True):
            yield

    @pytest.mark.usefixtures("debug_nans")
    @pytest.mark.parametrize("emitter", ["guard", "port"])
    def test_debug_nans_sees_only_values_that_were_asked_for(self, emitter: str) -> None:
        def guarded_log(x, n):
            if x > 0.0:
                y = jnp.log(x)
            else:
                y = 0.0
            while n > 0:
                y = y / n.astype(jnp.float32)
                n -= 1
            return y

        batched = pcbatch.batch(guarded_log, plan=pcbatch.Plan(emitter=emitter))
        result = batched(np.array([-1.0, 2.0, 0.0], np.float32), i32(0, 1, 2))
        np.testing.assert_allclose(result, [0.0, np.log(2.0), 0.0], rtol=1e-6)

    @pytest.mark.parametrize("emitter", ["guard", "port"])
    def test_a_primitive_that_would_hang_on_junk(self, emitter: str) -> None:
        """The inner loop ends for n >= 0 only; lanes with n < 0 never execute it."""

        def halvings(n):
            return jax.lax.while_loop(lambda s: s[0] != 0, lambda s: (s[0] - 1, s[1] + 1), (n, 0))[1]

        def cautious(n):
            if n < 0:
                return -1
            total = 0
            for _ in range(2):
                total += halvings(n)
            return total

        batched = pcbatch.batch(cautious, plan=pcbatch.Plan(emitter=emitter))
        result = batched(i32(3, -(2**31), -5, 0, 7))
        assert np.asarray(result).tolist() == [6, -1, -1, 0, 14]

    def test_loops_that_end_only_on_their_own_side(self) -> None:
        """Under vmap a conditional with such loops in its arms never ends."""

        def down(n):
            return jax.lax.while_loop(lambda s: s != 0, lambda s: s - 2, n)

        def split(n):
            if n % 2 == 0:
                return down(n)
            return down(n - 1) + 1

        assert np.asarray(pcbatch.batch(split)(i32(4, 7, 8, 1))).tolist() == [0, 1, 0, 1]

    def test_a_cheap_loop_that_ends_only_on_its_own_side(self) -> None:
        """So cheap that the branch would be a selection, if it were not for the lanes that go elsewhere."""

        def down(n):
            return jax.lax.while_loop(lambda s: s != 0, lambda s: s - 2, n)

        def split(n):
            if n % 2 == 0:
                n = down(n)
            return n

        assert np.asarray(pcbatch.batch(split)(i32(4, 7, 8, 1))).tolist() == [0, 7, 0, 1]

    @pytest.mark.parametrize("strategy", ["pc", "local"])
    def test_a_loop_that_would_hang_on_junk_inside_another_primitive(self, strategy: str) -> None:
        @jax.jit
        def halvings(n):
            return jax.lax.while_loop(lambda s: s[0] != 0, lambda s: (s[0] - 1, s[1] + 1), (n, 0))[1]

        def cautious(n):
            if n < 0:
                return -1
            total = 0
            for _ in range(2):
                total += halvings(n)
            return total

        batched = pcbatch.batch(cautious, strategy=strategy)
        assert np.asarray(batched(i32(3, -(2**31), -5, 0, 7))).tolist() == [6, -1, -1, 0, 14]

    def test_division_by_zero_in_the_arm_not_taken(self) -> None:
        def safe_ratio(a, b):
            if b == 0:
                return 0
            return a // b

        assert np.asarray(pcbatch.batch(safe_ratio)(i32(6, 6, 7), i32(2, 0, 3))).tolist() == [3, 0, 2]


class TestDtypes:
    """x64 on and off."""

    @pytest.mark.full_only
    def test_x64_is_a_signature_of_its_own(self) -> None:
        batched = pcbatch.batch(sum_to)
        with jax.enable_x64(True):
            wide = batched(np.array([3, 70000], np.int64))
            assert wide.dtype == jnp.int64
            assert np.asarray(wide).tolist() == [6, 2450035000]
        assert batched(i32(3, 4)).dtype == jnp.int32

    @pytest.mark.promotion("standard")
    def test_the_configuration_is_part_of_the_signature(self) -> None:
        def half(n):
            while n > 100:
                n -= 1
            return n * 0.5

        batched = pcbatch.batch(half)
        for x64, dtype in ((False, jnp.float32), (True, jnp.float64), (False, jnp.float32)):
            with jax.enable_x64(x64):
                assert batched(i32(3, 4)).dtype == dtype

        def mixed(n, x):
            return n + x if n > 1 else x

        batched = pcbatch.batch(mixed)
        assert np.asarray(batched(i32(1, 2), np.ones(2, np.float32))).tolist() == [1, 3]
        with jax.numpy_dtype_promotion("strict"), pytest.raises(pcbatch.CompileError):
            batched(i32(1, 2), np.ones(2, np.float32))

    def test_float64_keeps_its_precision(self) -> None:
        def thirds(x, n):
            while n > 0:
                x = x / 3
                n -= 1
            return x

        with jax.enable_x64(True):
            result = pcbatch.batch(thirds)(np.array([1.0, 2.0]), i32(9, 3))
            np.testing.assert_allclose(result, [3.0**-9, 2 / 27], rtol=1e-14)


class TestZeroLanes:
    """An empty batch gives an empty result of the right type."""

    @pytest.mark.parametrize("strategy", ["pc", "local"])
    def test_recursive(self, strategy: str) -> None:
        result = pcbatch.batch(fib, strategy=strategy)(np.zeros(0, np.int32))
        assert result.shape == (0,) and result.dtype == jnp.int32

    def test_vectors_and_trees(self) -> None:
        program = REGISTRY["dict_values"]
        result = program.batched()(np.zeros(0, np.int32), np.zeros((0, 2), np.float32))
        assert result["v"].shape == (0, 2) and result["inner"][1].dtype == bool

    def test_run(self) -> None:
        result = pcbatch.batch(fib).run(np.zeros(0, np.int32))
        assert result.status.shape == (0,)


class TestMachine:
    """What drives the blocks."""

    @pytest.mark.parametrize("emitter", ["guard", "port"])
    def test_a_run_in_chunks(self, emitter: str) -> None:
        """At most so many trips at a time; lanes that still run say so."""
        batched = pcbatch.batch(fib, plan=pcbatch.Plan(schedule="earliest", emitter=emitter, modes=pcbatch.Dense()))
        compiled, given = batched._compiled((i32(3, 7),), {})
        machine = compiled.executable.machine
        state = machine.start(compiled.args(given), 2, 16)
        for trips in range(1, 4):
            state = machine.advance(state, 1)
            assert int(state.trips) == trips
            assert machine.results(state.carry)[1].tolist() == [int(Status.RUNNING)] * 2
        (value,), status = machine.results(machine.advance(state).carry)
        assert value.tolist() == [3, 21] and status.tolist() == [OK, OK]

    def test_the_emitter_of_a_platform(self) -> None:
        for platform, name in {"cpu": "guard", "cuda": "port", "rocm": "port", "tpu": "port"}.items():
            with lowered_for(platform):
                assert emit.pick("auto").name == name
        assert [emit.pick(name).name for name in ("guard", "port")] == ["guard", "port"]
        assert {name: type(e).__name__ for name, e in emit.EMITTERS.items()} == {"guard": "Guard", "port": "Port"}

    def test_concrete_arguments_inside_jit(self) -> None:
        batched = pcbatch.batch(fib)
        args = jnp.asarray(i32(3, 7))
        assert np.asarray(jax.jit(lambda: batched(args))()).tolist() == [3, 21]


def test_stats_are_off_unless_asked_for() -> None:
    result = pcbatch.batch(fib).run(i32(3, 4))
    assert int(result.stats.trips) > 0
    with_stats = pcbatch.batch(fib, stats=True).run(i32(3, 4))
    assert len(with_stats.stats.blocks) > 0
    block = with_stats.stats.blocks[0]
    assert block.function == "fib" and int(block.visits) >= 0 and int(block.active) >= 0
    assert all(isinstance(text, str) for text in block.texts)


def test_a_third_batched_function_is_called_per_lane() -> None:
    @pcbatch.batch
    def outer(n):
        return triangle(n) if n % 2 == 0 else -triangle(n)

    assert np.asarray(outer(i32(1, 2, 3, 4))).tolist() == [-1, 3, -6, 10]
