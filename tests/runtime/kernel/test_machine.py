"""The machine in one kernel, interpreted: every lane ends as in the machine of loops and as in plain Python."""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import pcbatch
from pcbatch.runtime.kernel import launch
from pcbatch.runtime.kernel.machine import KernelMachine, SplitMachine
from pcbatch.runtime.vm.policies import POLICIES
from pcbatch.runtime.vm.status import Status
from tests.oracles.plans import planned, replanned
from tests.programs import REGISTRY
from tests.programs.classics import fib
from tests.runtime.kernel.kernels import lowered

pytestmark = pytest.mark.share(4)

N = np.arange(10, dtype=np.int32)
WANT = [1, 1, 2, 3, 5, 8, 13, 21, 34, 55]
TILE = pcbatch.Kernel(tile=4)
FIB = pcbatch.batch(fib, plan=pcbatch.Plan(emitter=TILE))


def leaves(tree: Any) -> list[np.ndarray]:
    def array(x: Any) -> np.ndarray:
        is_key = jnp.issubdtype(x.dtype, jax.dtypes.prng_key)
        return np.asarray(jax.random.key_data(x) if is_key else x)

    return [array(x) for x in jax.tree.leaves(tree)]


def same(got: pcbatch.Result, want: pcbatch.Result, rtol: float = 1e-5) -> None:
    """Integers, keys and statuses to the bit; floats to rounding."""
    assert got.status.tolist() == want.status.tolist()
    for a, b in zip(leaves(got.value), leaves(want.value), strict=True):
        if a.dtype.kind in "fV":
            few = 1e-2 if a.dtype.itemsize < 4 else rtol
            np.testing.assert_allclose(a.astype(np.float64), b.astype(np.float64), rtol=few, atol=few)
        else:
            np.testing.assert_array_equal(a, b)


def machine_of(f: Any, *args: Any) -> Any:
    return f.lower(*args).program.executable.machine


class TestRuns:
    @pytest.mark.parametrize("schedule", POLICIES)
    def test_every_policy(self, schedule: str) -> None:
        f = replanned(FIB, schedule=schedule)
        assert isinstance(machine_of(f, N), KernelMachine)
        assert f(N).tolist() == WANT

    @pytest.mark.parametrize("tile", [1, 2, 16])
    def test_tiles_that_do_not_divide_the_lanes(self, tile: int) -> None:
        assert replanned(FIB, emitter=pcbatch.Kernel(tile=tile))(N[:7]).tolist() == WANT[:7]

    def test_stacks_grow(self) -> None:
        @pcbatch.batch(plan=pcbatch.Plan(emitter=TILE))
        def down(n):
            if n <= 0:
                return 0
            return 1 + down(n - 1)

        depths = np.array([0, 3, 150, 20, 7, 1], np.int32)
        assert down(depths).tolist() == depths.tolist()
        assert machine_of(down, depths).layout.frames is not None

    def test_limits_park_the_lanes_that_meet_them(self) -> None:
        for options in ({"max_depth": 3}, {"max_steps": 20}):
            got, want = (
                replanned(FIB, **options).run(N),
                pcbatch.batch(fib, **planned(fork="never", **options)).run(N),
            )
            assert got.status.tolist() == want.status.tolist()
            assert {int(s) for s in got.status} > {int(Status.OK)}

    def test_lanes_that_fail(self) -> None:
        @pcbatch.batch(plan=pcbatch.Plan(emitter=TILE))
        def root(x, n):
            assert x >= 0, f"{x} has no root"
            while n > 0:
                x, n = jnp.sqrt(x), n - 1
            return x

        x, n = jnp.array([4.0, -1.0, 16.0]), jnp.array([1, 2, 2])
        result = root.run(x, n)
        assert result.status.tolist() == [0, int(Status.ASSERTION), 0]
        with pytest.raises(pcbatch.BatchRuntimeError, match=r"-1\.0 has no root"):
            root(x, n)

    def test_in_chunks_of_trips(self) -> None:
        machine = FIB.start(N)
        chunks = 0
        while not machine.done:
            machine, chunks = machine.advance(10), chunks + 1
        assert machine.result().value.tolist() == WANT and chunks > 5

    def test_saved_and_resumed(self, tmp_path: Any) -> None:
        file = tmp_path / "run"
        FIB.start(N).advance(10).save(file)
        assert FIB.load(file).advance().result().value.tolist() == WANT

    def test_vectors_stay_in_memory(self) -> None:
        @pcbatch.batch(plan=pcbatch.Plan(emitter=TILE))
        def powers(a, v, n):
            while n > 0:
                v, n = a @ v, n - 1
            return v

        a = jnp.eye(12) * 0.5 + jnp.arange(144.0).reshape(12, 12) / 1e3
        v, n = jnp.arange(72.0).reshape(6, 12), jnp.array([0, 1, 5, 2, 3, 4])
        plan = machine_of(powers.with_options(in_axes=(None, 0, 0)), a, v, n).plan
        assert len(plan.carried) < len(plan.layout.registers)
        same(
            powers.with_options(in_axes=(None, 0, 0)).run(a, v, n),
            pcbatch.batch(powers.fn, in_axes=(None, 0, 0)).run(a, v, n),
        )

    def test_registers_that_change_places(self) -> None:
        @pcbatch.batch(plan=pcbatch.Plan(emitter=TILE))
        def swaps(a, b, n):
            while n > 0:
                a, b, n = b, a, n - 1
            return a, b

        a, b = np.arange(60.0, dtype=np.float32).reshape(5, 12), -np.ones((5, 12), np.float32)
        n = np.array([0, 1, 2, 3, 4], np.int32)
        first, second = swaps(a, b, n)
        odd = (n % 2 == 1)[:, None]
        np.testing.assert_array_equal(first, np.where(odd, b, a))
        np.testing.assert_array_equal(second, np.where(odd, a, b))

    def test_small_arrays(self) -> None:
        @pcbatch.batch(plan=pcbatch.Plan(emitter=TILE))
        def shifted(x, n):
            while n > 0:
                x, n = jnp.roll(x, 1) + 1, n - 1
            return x

        x, n = np.arange(15, dtype=np.int32).reshape(5, 3), np.array([0, 1, 2, 3, 4], np.int32)
        want = [np.roll(row, k) + k for row, k in zip(x, n, strict=True)]
        np.testing.assert_array_equal(shifted(x, n), want)

    def test_inner_loops_end_whatever_other_lanes_hold(self) -> None:
        @pcbatch.batch(plan=pcbatch.Plan(emitter=TILE))
        def f(n):
            total = 0
            while n > 0:
                total = total + jax.lax.while_loop(lambda c: c != 0, lambda c: jnp.where(c > 0, c // 2, c - 1), n)
                n = n - 3
            return total + n

        want = pcbatch.batch(f.fn).run(N)
        same(f.run(N), want)

    def test_lanes_over_their_limit_lend_their_values(self) -> None:
        """All lanes that wait for the block have used up their steps; those of another lane would keep it going."""

        @pcbatch.batch(plan=pcbatch.Plan(emitter=TILE), max_steps=3)
        def halved(x, n):
            while n > 0:
                x = x + jax.lax.while_loop(lambda c: c != 1, lambda c: jnp.where(c % 2 == 0, c // 2, c - 1), x)
                n = n - 1
            return x

        x, n = np.array([-5, 8, 9, 30], np.int32), np.array([0, 9, 9, 9], np.int32)
        assert halved.run(x, n).status.tolist() == [0, *[int(Status.STEP_LIMIT)] * 3]

    def test_truth_values_on_stacks(self) -> None:
        @pcbatch.batch(plan=pcbatch.Plan(emitter=TILE))
        def odd_calls(n, p):
            if n <= 0:
                return 0
            below = odd_calls(n - 1, not p)
            return below + 1 if p else below

        p = np.arange(10) % 3 == 0
        same(odd_calls.run(N, p), pcbatch.batch(odd_calls.fn, plan=pcbatch.Plan(fork="never")).run(N, p))

    def test_arrays_whose_places_are_no_int32(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(launch, "LARGEST", 99)
        assert FIB.with_options(max_depth=2)(N[:3]).tolist() == WANT[:3]
        with pytest.raises(pcbatch.UsageError, match="`frames` has .* elements"):
            FIB.with_options(max_depth=40)(N)


class TestTransformations:
    def test_jit_vmap_and_export(self) -> None:
        f = FIB.with_options(max_depth=16)
        assert jax.jit(f)(N).tolist() == WANT
        assert jax.vmap(f)(N.reshape(2, 5)).tolist() == [WANT[:5], WANT[5:]]
        exported = jax.export.export(jax.jit(f), platforms=["cpu"])(N)
        assert exported.call(N).tolist() == WANT

    def test_gradients_are_those_of_other_machines(self) -> None:
        @pcbatch.batch
        def grow(x):
            while x < 10.0:
                x = x * x + 1.0
            return x

        x = jnp.array([0.5, 1.0, 2.0])
        for f in (grow, jax.jit(grow)):
            del f
        inside = grow.with_options(plan=pcbatch.Plan(emitter="kernel"))
        np.testing.assert_allclose(jax.grad(lambda x: inside(x).sum())(x), jax.grad(lambda x: grow(x).sum())(x))
        np.testing.assert_allclose(jax.jvp(inside, (x,), (x,))[1], jax.jvp(grow, (x,), (x,))[1])


class TestRefill:
    @pytest.mark.parametrize("lanes", [3, 4, 8])
    def test_map(self, lanes: int) -> None:
        assert FIB.map(N, lanes=lanes).value.tolist() == WANT

    def test_map_inside_jit(self) -> None:
        f = FIB.with_options(max_depth=16)
        assert jax.jit(lambda n: f.map(n, lanes=4).value)(N).tolist() == WANT

    def test_inputs_that_fail_and_those_without_room(self) -> None:
        f = FIB.with_options(max_depth=3)
        assert f.map(N, lanes=4).status.tolist() == f.run(N).status.tolist()

    def test_stacks_that_grow_keep_their_inputs(self) -> None:
        @pcbatch.batch(plan=pcbatch.Plan(emitter=TILE))
        def down(n):
            if n <= 0:
                return 0
            return 1 + down(n - 1)

        depths = np.array([0, 3, 150, 20, 7, 1, 90, 2], np.int32)
        assert down.map(depths, lanes=3).value.tolist() == depths.tolist()

    def test_chunks_from_the_host(self) -> None:
        assert FIB.map(N, lanes=4, chunk=5).value.tolist() == WANT


@pcbatch.batch(plan=pcbatch.Plan(emitter=TILE))
def whitened(x, n):
    """Shrink a matrix by two loops, and factorise it from time to time: that has no form in a kernel."""
    total = 0
    while n > 0:
        m = n
        while m % 3 != 0:
            m, total = m + 1, total + 1
        if n % 4 == 0:
            x = jnp.linalg.cholesky(x @ x.T + jnp.eye(2))
        else:
            x = x * 0.5
        n = n - 1
    return x, total


@pcbatch.batch(plan=pcbatch.Plan(emitter=TILE))
def powers(n, a):
    """Multiply by a large matrix in each of two calls."""
    if n <= 0:
        return jnp.ones(64)
    v = powers(n - 1, a)
    if n % 2 == 0:
        v = v + powers(n - 3, a)
    return jnp.tanh(a @ v)


class TestRepeatedLoops:
    """A visit computes a loop of one block several times: what lanes do stays as it is."""

    def collatz(self, **options: Any) -> Any:
        @pcbatch.batch(**planned(**options))
        def steps(n):
            count = 0
            while n > 1:
                n = jnp.where(n % 2 == 0, n // 2, 3 * n + 1)
                count = count + 1
            return count

        return steps

    @pytest.mark.parametrize("schedule", POLICIES)
    def test_results(self, schedule: str) -> None:
        n = np.arange(1, 30, dtype=np.int32)
        f = self.collatz(emitter=pcbatch.Kernel(tile=4, spins=3), schedule=schedule)
        assert machine_of(f, n).plan.repeats and f(n).tolist() == self.collatz()(n).tolist()
        limited = f.with_options(max_steps=20).run(n)
        assert limited.status.tolist() == self.collatz(max_steps=20).run(n).status.tolist()

    def test_it_is_told_and_saves_trips(self) -> None:
        n = np.arange(1, 30, dtype=np.int32)
        f, g = (self.collatz(emitter=pcbatch.Kernel(tile=4, spins=k), numbers="jax") for k in (4, 1))
        assert "loops repeated (bb" in str(f.explain_schedule(n).kernel) and "4 times)" in str(
            f.explain_schedule(n).kernel
        )
        assert int(f.run(n).stats.trips) < 0.4 * int(g.run(n).stats.trips)

    def test_large_blocks_and_those_with_inner_loops_stay(self) -> None:
        @pcbatch.batch(plan=pcbatch.Plan(emitter=pcbatch.Kernel(tile=4, spins=4)))
        def inner(n):
            while n > 1:
                n = n - 1 - jax.lax.while_loop(lambda c: c != 0, lambda c: c // 2, jnp.maximum(n, 0))
            return n

        assert not machine_of(inner, N).plan.repeats and inner(N).tolist() == [min(n, 1) for n in N.tolist()]
        with pytest.raises(pcbatch.UsageError, match="PCB401"):
            pcbatch.Kernel(spins=0)


@pytest.mark.in_place
class TestBlocksOutside:
    """Those that no kernel holds, and those that prefer all lanes."""

    x, n = np.ones((9, 2, 2), np.float32), np.arange(9, dtype=np.int32)

    def test_they_are_named_with_the_reason(self) -> None:
        text = str(whitened.explain_schedule(self.x, self.n).kernel)
        line = whitened.fn.__code__.co_firstlineno + 9
        assert "outside of it, for all lanes: `cholesky` has no form in a kernel" in text and f"(line {line})" in text
        machine = machine_of(whitened, self.x, self.n)
        assert isinstance(machine, SplitMachine) and len(machine.plan.outside) == 1

    @pytest.mark.parametrize("schedule", POLICIES)
    def test_results(self, schedule: str) -> None:
        f = replanned(whitened, schedule=schedule)
        same(f.run(self.x, self.n), pcbatch.batch(whitened.fn).run(self.x, self.n))

    def test_ways_to_call(self) -> None:
        want = pcbatch.batch(whitened.fn).run(self.x, self.n)
        same(whitened.map(self.x, self.n, lanes=4), want)
        same(jax.jit(lambda x, n: whitened.run(x, n))(self.x, self.n), want)
        machine = whitened.start(self.x, self.n)
        while not machine.done:
            machine = machine.advance(1)
        same(machine.result(), want)

    def test_large_products_and_calls(self) -> None:
        a, n = np.eye(64, dtype=np.float32) * 0.5, np.array([0, 5, 3, 7, 1], np.int32)
        f = powers.with_options(in_axes=(0, None))
        assert isinstance(machine_of(f, n, a), SplitMachine)
        same(f.run(n, a), pcbatch.batch(powers.fn, in_axes=(0, None), plan=pcbatch.Plan(fork="never")).run(n, a))
        limited = f.with_options(max_depth=2).run(n, a)
        other = pcbatch.batch(powers.fn, in_axes=(0, None), plan=pcbatch.Plan(fork="never"), max_depth=2).run(n, a)
        assert limited.status.tolist() == other.status.tolist() and max(limited.status.tolist()) > 0

    def test_a_loop_of_kernels(self) -> None:
        text = lowered(whitened, self.x, self.n)
        assert text.count(KERNELS) == 1 and "stablehlo.while" in text


KERNELS = "__gpu$xla.gpu.triton"


class TestLowering:
    """One kernel and no loop around it."""

    @pytest.mark.parametrize("platform", ["cuda", "rocm"])
    def test_a_run(self, platform: str) -> None:
        text = lowered(FIB.with_options(max_depth=16), N, platform=platform)
        assert text.count(KERNELS) == 1 and "stablehlo.while" not in text

    def test_a_map(self) -> None:
        f = FIB.with_options(max_depth=16)
        text = lowered(lambda n: f.map(n, lanes=4).value, N)
        assert text.count(KERNELS) == 1 and "stablehlo.while" not in text

    def test_none_for_a_tpu(self) -> None:
        with pytest.raises(pcbatch.UsageError, match="PCB428"):
            jax.jit(FIB.with_options(max_depth=16)).trace(N).lower(lowering_platforms=("tpu",))


class TestQualification:
    def explained(self, f: Any, *args: Any) -> str:
        return str(f.explain_schedule(*args).kernel)

    def test_a_program_that_can(self) -> None:
        assert self.explained(pcbatch.batch(fib), N).startswith("it can be")
        assert self.explained(FIB, N) == "it is one kernel of a GPU, in tiles of 4 lanes"

    def test_reasons_have_lines(self) -> None:
        @pcbatch.batch
        def roots(x):
            while x[0] < 10.0:
                x = jnp.linalg.cholesky(x[:, None] * x[None] + jnp.eye(3))[0] + x
            return x

        line = roots.fn.__code__.co_firstlineno + 3
        text = self.explained(roots, jnp.ones((2, 3)))
        assert text.startswith("no: `cholesky` has no form in a kernel") and f"(line {line})" in text

    @pytest.mark.parametrize(
        ("options", "reason"),
        [({"stats": True}, "statistics"), ({"schedule": "user"}, "counts all lanes"), ({}, "it prints")],
    )
    def test_features_of_the_whole_program(self, options: dict[str, Any], reason: str) -> None:
        class User:
            name = "user"

            def trip(self, blocks: Any, carry: Any) -> Any:
                return blocks.sweep(range(len(blocks)), carry)

        def count(n):
            while n > 0:
                n = n - 1
            return n

        def printing(n):
            while n > 0:
                print(n)
                n = n - 1
            return n

        options = options | ({"schedule": User()} if "schedule" in options else {})
        f = pcbatch.batch(count if options else printing, **planned(**options))
        assert reason in self.explained(f, N)
        with pytest.raises(pcbatch.UsageError, match="PCB428"):
            replanned(f, emitter="kernel")(N)

    def test_calls_side_by_side_are_for_other_machines(self) -> None:
        assert FIB.lower(N).program.tasks is None
        with pytest.raises(pcbatch.UsageError, match="emitter"):
            replanned(FIB, fork="always")(N)

    @pytest.mark.parametrize("sizes", [{"tile": 3}, {"warps": 0}, {"tile": 2.0}])
    def test_sizes_are_powers_of_two(self, sizes: dict[str, Any]) -> None:
        with pytest.raises(pcbatch.UsageError, match="PCB401"):
            pcbatch.Kernel(**sizes)


SMALL = [name for k, name in enumerate(REGISTRY) if k % 32 == 5]
CANNOT = {"complex_values"}


@pytest.mark.promotion("standard")
@pytest.mark.parametrize("name", [pytest.param(n, marks=() if n in SMALL else pytest.mark.full_only) for n in REGISTRY])
def test_every_program(name: str) -> None:
    program = REGISTRY[name]
    with program.mode():
        args = program.args(6)
        f = program.batched(max_depth=8, fork="never", emitter=TILE)
        if name in CANNOT:
            with pytest.raises(pcbatch.UsageError, match="PCB428"):
                f.run(*args)
            return
        same(f.run(*args), program.batched(max_depth=8, fork="never").run(*args), max(program.rtol, 1e-5))
