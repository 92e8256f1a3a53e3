"""The choice of plain calls between lanes together and one after the other."""

from __future__ import annotations

import heapq
import sys
from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import pcbatch
from pcbatch.runtime.costs.plan_modes import BlockCost, Costs
from pcbatch.runtime.scalar import ScalarMachine, worth
from pcbatch.runtime.scalar.loop_nest import blocks_of, loop_nest
from pcbatch.runtime.scalar.worth import WIDTHS, Widths, of_one_lane, one_by_one
from tests.oracles.plans import planned
from tests.programs.classics import fib
from tests.runtime.scalar.test_dealt import drawn


def halvings(n):
    count = 0
    while n > 1:
        n = n // 2 if n % 2 == 0 else 3 * n + 1
        count += 1
    return count


def row_sums(n, m):
    total = 0
    for i in range(n):
        for j in range(m):
            if (i + j) % 2 == 0:
                total += i * j
    return total


def powers(x):
    return x**3 if x > 2.5 else x * x if x > 1 else x


def checked(n):
    if n < 0:
        raise ValueError("negative")
    return halvings(n + 1)


NATIVE = "xla_cpu_small_call"


def solves(a):
    return jnp.linalg.cholesky(a)[0, 0]


def ran(f: Any) -> list[bool]:
    """Whether each program that the function has compiled runs one lane after the other, in order."""
    return [isinstance(p.executable.machine, ScalarMachine) for p in f._programs.cache.values()]


def smallest(xs):
    heap = []
    for x in xs:
        heapq.heappush(heap, (x, x))
    return heapq.heappop(heap)[0]


def alone(fn: Callable[..., Any], *args: Any) -> Widths:
    """The numbers of lanes that a program runs one after the other."""
    lowered = pcbatch.batch(fn, plan=pcbatch.Plan(emitter="guard")).lower(*args)
    return one_by_one(lowered.program.executable.costs, lowered.stages.schedule)  # type: ignore[union-attr]


def block(operations: float, words: float = 3.0, arrays: int = 3) -> BlockCost:
    return BlockCost("bb", operations, words, arrays, 1.0, False, False, alone=operations)


class TestPlainCalls:
    def test_few_lanes_run_one_after_the_other_and_many_together(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr("pcbatch.runtime.execute.executor.one_by_one", lambda *args: Widths.below(8))
        f = pcbatch.batch(halvings)
        few, many = np.arange(1, 6, dtype=np.int32), np.arange(1, 10, dtype=np.int32)
        assert f(few).tolist() == [halvings(int(n)) for n in few] and ran(f) == [True]
        assert f(many).tolist() == [halvings(int(n)) for n in many] and ran(f) == [True, False]
        assert f(few[:2]).tolist() == [0, 1] and len(ran(f)) == 2

    def test_independent_calls_run_side_by_side_in_many_lanes(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr("pcbatch.runtime.execute.executor.one_by_one", lambda *args: Widths.below(16))
        f = pcbatch.batch(fib)
        ns = np.arange(600, dtype=np.int32) % 5
        assert f(ns[:9]).tolist() == [fib(int(n)) for n in ns[:9]] and ran(f) == [True]
        assert f(ns).tolist() == [fib(int(n)) for n in ns]
        assert [p.tasks is not None for p in f._programs.cache.values()] == [False, True]

    def test_many_lanes_without_such_calls(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr("pcbatch.runtime.execute.executor.one_by_one", lambda *args: Widths(WIDTHS))
        f = pcbatch.batch(halvings)
        ns = np.arange(600, dtype=np.int32) % 50
        assert f(ns).tolist() == [halvings(int(n)) for n in ns] and ran(f) == [True]
        assert f(ns[:3]).tolist() == [0, 0, 1] and ran(f) == [True]

    def test_states_that_take_much_memory_are_dealt_out_in_rounds(self, monkeypatch: pytest.MonkeyPatch) -> None:
        f, ns = pcbatch.batch(halvings, plan=pcbatch.Plan(emitter="scalar")), np.arange(2000, dtype=np.int32) % 40
        assert f._programs.of_call((ns,), {})[0].with_pc("a test").width(2000) == 2000
        monkeypatch.setattr("pcbatch.runtime.execute.executor.AT_ONCE", 1000)
        assert f._programs.of_call((ns,), {})[0].with_pc("a test").width(2000) < 2000
        assert f(ns).tolist() == [halvings(int(n)) for n in ns]

    @pytest.mark.parametrize(
        "options",
        [{"emitter": "guard"}, {"schedule": "sweep"}, {"stats": True}, {"modes": pcbatch.Dense()}],
        ids=str,
    )
    def test_options_about_lanes_together(self, options: dict[str, Any]) -> None:
        f = pcbatch.batch(halvings, **planned(**options))
        f(np.arange(1, 4, dtype=np.int32))
        assert ran(f) == [False]

    def test_what_runs_in_bits_or_through_few_lanes(self) -> None:
        f, ns = pcbatch.batch(halvings), np.arange(1, 4, dtype=np.int32)
        assert f.map(ns, lanes=2).value.tolist() == [0, 1, 7]
        assert ran(f) == [False]
        assert f.start(ns).advance().result().value.tolist() == f.run(ns, timeout=60).value.tolist() == [0, 1, 7]
        assert f.map(ns, progress=lambda done, total: None).value.tolist() == [0, 1, 7]
        assert sorted(ran(f)) == [False, True]

    def test_map_and_limits(self) -> None:
        f, ns = pcbatch.batch(halvings, max_steps=4), np.arange(1, 4, dtype=np.int32)
        assert f.map(ns).status.tolist() == f.run(ns).status.tolist() == [0, 0, int(pcbatch.Status.STEP_LIMIT)]
        assert ran(f) == [True]

    def test_operations_are_looked_into_where_they_are_not_known(self, monkeypatch: pytest.MonkeyPatch) -> None:
        module = sys.modules["pcbatch.runtime.scalar.obstacles"]
        monkeypatch.setattr(module, "CALLED", frozenset(module.CALLED) - {"cholesky"})
        f, a = pcbatch.batch(solves), np.stack([np.eye(2, dtype=np.float32)] * 2)
        assert f(a).tolist() == [1.0, 1.0] and ran(f) == [False]

    def test_operations_that_no_native_function_holds(self) -> None:
        f, a = pcbatch.batch(solves), np.stack([np.eye(2, dtype=np.float32)] * 2)
        assert f(a).tolist() == [1.0, 1.0] and ran(f) == [False]

    @pytest.mark.refused
    def test_a_native_function_that_xla_refuses(self, monkeypatch: pytest.MonkeyPatch) -> None:
        """An operation that the list of obstacles lacks: the lanes run together, now and from then on."""
        module = sys.modules["pcbatch.runtime.scalar.obstacles"]
        monkeypatch.setattr(module, "CALLED", frozenset(module.CALLED) - {"cholesky"})
        monkeypatch.setattr(module, "KERNELS", ())
        f, a = pcbatch.batch(solves), np.stack([np.eye(2, dtype=np.float32)] * 2)
        assert f(a).tolist() == [1.0, 1.0] and f(2 * a).tolist() == pytest.approx([2**0.5] * 2)
        assert ran(f) == [True, False]


class TestInsideJit:
    """One program is traced, and the way in which its lanes advance is chosen when it is lowered."""

    def test_few_lanes_run_one_after_the_other_and_many_together(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr("pcbatch.runtime.execute.executor.one_by_one", lambda *args: Widths.below(8))
        f = pcbatch.batch(halvings)
        for lanes, alone in ((5, True), (9, False)):
            ns = np.arange(1, lanes + 1, dtype=np.int32)
            assert (NATIVE in jax.jit(f).lower(ns).as_text()) == alone
            assert jax.jit(f)(ns).tolist() == [halvings(int(n)) for n in ns]

    def test_vmap_folds_lanes_before_the_choice(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr("pcbatch.runtime.execute.executor.one_by_one", lambda *args: Widths.below(8))
        f, ns = jax.jit(jax.vmap(pcbatch.batch(halvings))), np.arange(1, 13, dtype=np.int32).reshape(4, 3)
        assert NATIVE not in f.lower(ns).as_text() and NATIVE in f.lower(ns[:2]).as_text()
        assert f(ns).tolist() == [[halvings(int(n)) for n in row] for row in ns]

    def test_gradients_record_lanes_that_run_together(self) -> None:
        f, xs = pcbatch.batch(powers), np.array([0.5, 2.0, 3.0], np.float32)
        value, gradient = jax.jit(jax.value_and_grad(lambda xs: f(xs).sum()))(xs)
        assert value == sum(map(powers, xs)) and gradient.tolist() == [1.0, 4.0, 27.0]

    def test_failures_are_told_by_the_blocks_that_both_ways_have(self) -> None:
        f = pcbatch.batch(checked, on_failure="error")
        with pytest.raises(Exception, match="negative"):
            jax.block_until_ready(jax.jit(f)(np.array([1, 2, -1], np.int32)))

    def test_options_about_lanes_together(self) -> None:
        ns = np.arange(3, dtype=np.int32)
        assert NATIVE not in jax.jit(pcbatch.batch(halvings, plan=pcbatch.Plan(emitter="guard"))).lower(ns).as_text()

    def test_other_platforms_have_lanes_together(self) -> None:
        exported = jax.export.export(jax.jit(pcbatch.batch(halvings)), platforms=["cuda"])(np.arange(3, dtype=np.int32))
        assert NATIVE not in str(exported.mlir_module())


class TestExplained:
    def test_a_call_that_does_and_one_that_does_not(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr("pcbatch.runtime.execute.executor.one_by_one", lambda *args: Widths.below(8))
        f = pcbatch.batch(halvings)
        few = f.explain_schedule(jnp.arange(5))
        assert few.alone == "fewer than 8" and few.runs_alone
        assert "a plain call runs one lane after the other" in str(few)
        assert "plain calls of fewer than 8 lanes run one after the other" in str(f.explain_schedule(jnp.arange(9)))
        assert f.explain_schedule(jnp.arange(5), lanes=4).alone == ""

    def test_a_program_that_always_does(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr("pcbatch.runtime.execute.executor.one_by_one", lambda *args: Widths(WIDTHS))
        assert "as any number of lanes do" in str(pcbatch.batch(halvings).explain_schedule(jnp.arange(5)))


class TestCosts:
    def test_expensive_blocks_run_together(self) -> None:
        cheap, dear = (one_by_one(Costs((block(n),), {}, False, True), "sweep") for n in (4.0, 1e6))
        assert not dear and 32 in cheap

    def test_a_heap_is_priced_by_its_steps(self) -> None:
        """Not by the room that it has: a form for a lane alone ends when the element has arrived."""

        def one(room: int) -> float:
            f = pcbatch.batch(smallest, plan=pcbatch.Plan(emitter="scalar"), max_length=room)
            f(np.zeros((1, 3), np.int32))
            (program,) = f._programs.cache.values()
            return max(of_one_lane(each) for each in program.executable.costs.blocks)

        assert one(1024) < 1.5 * one(16)

    def test_long_rounds_of_small_loops_gain_by_vectors(self) -> None:
        keys, ns = jax.random.split(jax.random.key(0), 3), np.arange(3, dtype=np.int32)
        assert 16 in alone(drawn, keys, ns) and 1024 not in alone(drawn, keys, ns)
        assert alone(halvings, ns) == Widths(WIDTHS)

    def test_where_kernels_cost_more_than_what_they_compute(self) -> None:
        assert one_by_one(Costs((block(4.0, arrays=400),), {}, False, True), "sweep") == Widths(WIDTHS)

    def test_a_visit_costs_more_with_each_operation(self) -> None:
        assert worth.of_one_lane(block(9.0)) > worth.of_one_lane(block(3.0)) > worth.VISIT


class TestLoopNest:
    def test_loops_in_loops(self) -> None:
        lowered = pcbatch.batch(row_sums, plan=pcbatch.Plan(emitter="scalar")).lower(jnp.arange(3), jnp.arange(3))
        program = lowered.program.executable.machine.program  # type: ignore[union-attr]
        nest = loop_nest(program)
        assert blocks_of(nest) == tuple(range(len(program.blocks)))
        (outer,) = (part for part in nest if not isinstance(part, int))
        assert any(not isinstance(part, int) for part in outer) or len(outer) >= 2

    def test_results(self) -> None:
        ns, ms = np.array([0, 3, 5, 1], np.int32), np.array([4, 0, 6, 1], np.int32)
        want = [row_sums(int(n), int(m)) for n, m in zip(ns, ms, strict=True)]
        assert pcbatch.batch(row_sums, plan=pcbatch.Plan(emitter="scalar"))(ns, ms).tolist() == want

    def test_a_limit_inside_an_inner_loop(self) -> None:
        run = pcbatch.batch(row_sums, plan=pcbatch.Plan(emitter="scalar"), max_steps=7)
        ns = np.array([1, 9], np.int32)
        status = run.run(ns, ns).status.tolist()
        assert status == [int(pcbatch.Status.OK), int(pcbatch.Status.STEP_LIMIT)]


class TestLoopsWithoutAnEnd:
    """XLA must compute nothing of a block before it is known that a lane waits for it: not even of arrays that no block
    changes."""

    @staticmethod
    def split(n):
        def down(n):
            return jax.lax.while_loop(lambda s: s[0] != 0, lambda s: s - 2, n)

        if n[0] % 2 == 0:
            return down(n)[1]
        return down(n - 1)[1] + 1

    @staticmethod
    def shared(n, step):
        def down(step):
            return jax.lax.while_loop(lambda s: s[0] != 0, lambda s: s - 2, step)

        return down(step)[1] + n if n > 3 else n

    def test_in_a_plain_call(self) -> None:
        n = np.array([[4, 1], [7, 1], [8, 1], [1, 1]], np.int32)
        assert pcbatch.batch(self.split)(n).tolist() == [-3, -5, -7, 1]

    def test_of_what_lanes_share(self) -> None:
        f = pcbatch.batch(self.shared, in_axes=(0, None))
        assert f(np.array([1, 2, 3], np.int32), np.array([1, 1], np.int32)).tolist() == [1, 2, 3]

    def test_where_the_user_chooses_the_options_of_xla(self) -> None:
        f = jax.jit(pcbatch.batch(self.split, plan=pcbatch.Plan(emitter="scalar")))
        n = np.array([[4, 1], [7, 1], [8, 1], [1, 1]], np.int32)
        assert f(n).tolist() == [-3, -5, -7, 1]
