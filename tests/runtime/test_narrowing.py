"""The last lanes of a run in a narrower machine: results, statuses, statistics and stacks stand where they stood."""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import pcbatch
from pcbatch.runtime.execute import narrowing
from pcbatch.runtime.vm.machine import Machine
from pcbatch.runtime.vm.status import Status
from tests.oracles.plans import planned, replanned
from tests.programs.classics import fib

LANES = 24
TAIL = np.array([40 if k % 7 == 3 else k % 5 for k in range(LANES)], np.int32)  # few lanes, that lie apart, go on


def walk(n, key, x):
    """A vector, a number, a key and a matrix that is stored into, in a loop of `n` rounds."""
    rows = jnp.zeros((3, 4), jnp.float32)
    total = 0
    for k in range(n):
        key, drawn = jax.random.split(key)
        x = 0.5 * x + jax.random.uniform(drawn, (4,))
        rows = rows.at[k % 3].set(x)
        total += k * k
    return total, x, key, rows


def digits(n):
    """A recursion as deep as `n`, with a list of frames."""
    return 0 if n == 0 else n % 10 + digits(n // 2) if n % 3 else 1 + digits(n - 1)


def checked(n):
    left = n
    while left > 0:
        left -= 1
        if n == 40 and left == 3:
            raise ValueError("too long")
    return n * 2


def arguments() -> tuple[Any, ...]:
    return TAIL, jax.random.split(jax.random.key(0), LANES), np.ones((LANES, 4), np.float32)


def widths(f: Any, *args: Any) -> tuple[int, ...]:
    found: tuple[int, ...] = f.lower(*args).program.executable.narrower(len(args[0]))
    return found


def both(fn: Any, **options: Any) -> tuple[Any, Any]:
    """A function with a narrower machine, and without."""
    return pcbatch.batch(fn, **planned(narrow=True, **options)), pcbatch.batch(fn, **planned(narrow=False, **options))


class TestResults:
    def test_they_stand_in_their_places(self) -> None:
        f, wide = both(walk)
        assert widths(f, *arguments()) == (3,) and widths(wide, *arguments()) == ()
        for found, wanted in zip(jax.tree.leaves(f(*arguments())), jax.tree.leaves(wide(*arguments())), strict=True):
            if jnp.issubdtype(found.dtype, jax.dtypes.prng_key):
                found, wanted = jax.random.key_data(found), jax.random.key_data(wanted)
            np.testing.assert_allclose(found, wanted, rtol=1e-6)

    @pytest.mark.parametrize("lanes", [8, 23, 64, 100, 512])
    def test_every_number_of_lanes(self, lanes: int) -> None:
        """From 64 lanes on a half goes on, where rounds are dear, and then an eighth."""

        @pcbatch.batch(plan=pcbatch.Plan(narrow=True))
        def halves(n):
            count = jnp.zeros(256, jnp.int32)
            while n > 0:
                n, count = n // 2, count * 1 + n
            return count[5]

        ns = np.where(np.arange(lanes) % 9 < 3, 2**30, np.arange(lanes)).astype(np.int32)
        assert halves(ns).tolist() == [2 * int(n) - int(n).bit_count() for n in ns]
        found = widths(halves, ns)
        assert len(found) == (2 if lanes >= 64 else 1) and found[-1] in (lanes // 8, lanes // 8 // 8 * 8)

    @pytest.mark.parametrize("schedule", ["drain", "sweep", "earliest", "largest"])
    @pytest.mark.parametrize("emitter", ["guard", "port"])
    def test_recursion(self, schedule: str, emitter: str) -> None:
        """Stacks move with their lanes."""
        f, _ = both(digits, schedule=schedule, emitter=emitter, fork="never")
        assert f(TAIL).tolist() == [digits(int(n)) for n in TAIL]

    def test_stacks_grow_in_either_machine(self) -> None:
        """The long lanes need more room than the others, when few of them are left."""

        def climb(n):
            return 0 if n == 0 else n % 7 + climb(n - 1) * (n % 2) + climb(n // 9)

        def late(n):
            """It begins to climb when the others are done."""
            k = 0
            while k * k < n * 40:
                k += 1
            return climb(n) + k

        f, _ = both(late, fork="never")
        deep = np.where(TAIL == 40, 240 + np.arange(LANES), TAIL).astype(np.int32)
        want = [late(int(n)) for n in deep]
        assert f(deep).tolist() == want
        assert f(deep).tolist() == want, "again, with the depths that are known"

    def test_results_of_failed_lanes(self) -> None:
        f, wide = both(checked)
        found, wanted = f.run(TAIL), wide.run(TAIL)
        assert found.status.tolist() == wanted.status.tolist() == np.where(TAIL == 40, int(Status.ERROR), 0).tolist()
        assert found.value.tolist() == wanted.value.tolist()
        with pytest.raises(pcbatch.BatchRuntimeError, match="too long"):
            f(TAIL)

    @pytest.mark.parametrize("most", [2, 30, 2000])
    def test_limits(self, most: int) -> None:
        f, wide = both(fib, fork="never", max_steps=most, unroll=1)
        ns = TAIL // 4
        found = f.run(ns)
        assert found.status.tolist() == wide.run(ns).status.tolist()
        assert (int(Status.STEP_LIMIT) in found.status.tolist()) == (most < 2000)

    def test_depths(self) -> None:
        f, wide = both(digits, fork="never", max_depth=9)
        assert f.run(TAIL * 100).status.tolist() == wide.run(TAIL * 100).status.tolist()


class TestWaysToCall:
    def test_transformations(self) -> None:
        f, wide = both(fib, fork="never")
        want = wide(TAIL // 4).tolist()
        assert jax.jit(f)(TAIL // 4).tolist() == want
        assert jax.vmap(f)(jnp.stack([TAIL // 4] * 2)).tolist() == [want, want]
        assert jax.jit(lambda ns: jax.lax.map(f, ns))(jnp.stack([TAIL // 4] * 2)).tolist() == [want, want]
        assert f(TAIL // 4, devices=min(2, len(jax.devices()))).tolist() == want

    def test_gradients(self) -> None:
        def power(x, n):
            y = x * 0 + 1
            for _ in range(n):
                y = y * x
            return y

        f, wide = both(power)
        x = np.linspace(0.5, 1.5, LANES, dtype=np.float32)
        slopes = [jax.grad(lambda x, g=g: jnp.sum(g(x, TAIL)))(x) for g in (f, wide)]
        np.testing.assert_allclose(*slopes, rtol=1e-5)

    def test_statistics_count_both_machines(self) -> None:
        f, wide = both(fib, fork="never", stats=True)
        found, wanted = f.run(TAIL // 4).stats, wide.run(TAIL // 4).stats
        assert [b.active for b in found.blocks] == [b.active for b in wanted.blocks]
        seen, before = f.profile(TAIL // 4), wide.profile(TAIL // 4)
        assert [b.active for b in seen.blocks] == [b.active for b in before.blocks]
        assert sum(b.offered for b in seen.blocks) < sum(b.offered for b in before.blocks)

    def test_queues_narrow_or_not(self) -> None:
        f, wide = both(fib, fork="never")
        assert f.map(TAIL // 4, lanes=16).value.tolist() == wide.map(TAIL // 4, lanes=16).value.tolist()
        assert not wide.lower(TAIL).program.executable.narrows


class TestChoice:
    """It is compiled where it may pay."""

    lanes = np.arange(256, dtype=np.int32)

    def test_by_cost(self) -> None:
        def rows(n):
            x = jnp.ones(32)
            while n > 0:
                x, n = 0.5 * x + jnp.roll(x, 1), n - 1
            return x

        f = pcbatch.batch(rows)
        assert [f.lower(self.lanes[:k]).program.executable.narrower(k) for k in (16, 63, 256)] == [(), (), (128, 32)]
        assert "the last 128 and 32 lanes" in str(f.explain_schedule(self.lanes))
        assert "the last" not in str(replanned(f, narrow=False).explain_schedule(self.lanes))

    def test_not_where_nothing_goes_round(self) -> None:
        assert widths(pcbatch.batch(lambda n: n + 1 if n > 3 else n, plan=pcbatch.Plan(narrow=True)), self.lanes) == ()

    def test_not_for_prints_and_kernels(self) -> None:
        def told(n):
            while n > 0:
                n -= 1
            print(n)
            return n

        assert widths(pcbatch.batch(told, plan=pcbatch.Plan(narrow=True)), self.lanes) == ()
        assert (
            widths(pcbatch.batch(fib, plan=pcbatch.Plan(narrow=True, fork="never", emitter="kernel")), self.lanes) == ()
        )

    @pytest.mark.parametrize(("platform", "more"), [("cpu", True), ("cuda", False), ("tpu", False)])
    def test_on_cpus(self, platform: str, more: bool) -> None:
        counts = [
            jax.jit(f).trace(self.lanes).lower(lowering_platforms=(platform,)).as_text().count("stablehlo.while")
            for f in both(fib, fork="never", schedule="sweep")
        ]
        assert (counts[0] > counts[1]) == more

    @pytest.mark.parametrize("value", [0, 1, "yes", 4])
    def test_wrong_values(self, value: Any) -> None:
        with pytest.raises(pcbatch.UsageError, match="PCB401"):
            pcbatch.batch(fib, plan=pcbatch.Plan(narrow=value))


def test_what_is_put_back_was_taken() -> None:
    """Lanes that are not taken keep what they have; places beyond the last lane are dropped."""
    program = pcbatch.batch(digits, plan=pcbatch.Plan(fork="never")).lower(TAIL).program
    machine: Machine = program.executable.machine
    state = machine.start(program.args(pcbatch.batch(digits)._compiled((TAIL,), {})[1]), LANES, 8)
    index = jnp.array([2, 5, LANES], jnp.int32)
    few = narrowing.taken(machine, state.carry, index)
    assert few["pc"].tolist()[2] == machine.layout.exit
    changed = jax.tree.map(lambda x: x + 1, few)
    back = narrowing.put_back(machine, state.carry, changed, index)
    assert np.flatnonzero(np.asarray(back["pc"]) != np.asarray(state.carry["pc"])).tolist() == [2, 5]


def test_tune_tries_the_other_way() -> None:
    few: dict[str, Any] = {"schedules": [], "emitters": [], "modes": [], "unrolls": [], "lanes": []}
    ns = np.resize(TAIL // 4, 64)
    for narrow, tried in ((None, "narrow="), (True, "narrow=False"), (False, "narrow=True")):
        f = pcbatch.batch(fib, plan=pcbatch.Plan(narrow=narrow, fork="never"))
        assert tried in str(f.tune(ns, seconds=60, **few))
