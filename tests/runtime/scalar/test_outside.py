"""Runs whose trips have both parts: lanes one after the other, and blocks outside for all of them at once.

Which blocks are outside is set here, so that both parts meet in every program.
"""

from __future__ import annotations

import dataclasses
import re
from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import pcbatch
from pcbatch.runtime.costs.plan_modes import BlockCost
from pcbatch.runtime.scalar import ScalarMachine, worth
from pcbatch.runtime.scalar.loop_nest import blocks_of, loop_nest
from pcbatch.runtime.scalar.outside import in_place
from pcbatch.runtime.vm.status import Status
from tests.programs import PROGRAMS, Program
from tests.runtime.scalar import test_machine
from tests.runtime.scalar.test_machine import (
    NUMBERS,
    RESULTS,
    assert_alone,
    classical,
    deep,
    endless,
    machine,
    scalar,
)


@pytest.fixture(autouse=True)
def every_other_block(monkeypatch: pytest.MonkeyPatch) -> None:
    """Every other block is outside."""
    monkeypatch.setattr(worth, "is_outside", lambda block, lanes: int(block.label.removeprefix("bb")) % 2 == 1)


@pytest.mark.share(12, 0)
@pytest.mark.promotion("standard")
@pytest.mark.parametrize("program", PROGRAMS, ids=lambda program: program.name)
def test_programs(program: Program) -> None:
    assert_alone(program)


class TestBothKinds(test_machine.TestBothKinds):
    """The tests of both kinds of runs, here with blocks outside."""


class TestRuns:
    def test_both_parts_are_there(self) -> None:
        f = scalar(classical)
        assert machine(f, NUMBERS).outside(len(NUMBERS))
        text = f.lower(NUMBERS).as_text("stablehlo")
        assert len(re.findall("xla_cpu_small_call", text)) > 0
        assert f(NUMBERS).tolist() == RESULTS

    def test_stacks_grow_and_have_an_end(self) -> None:
        depths = np.array([5, 700, 40], np.int32)
        assert scalar(deep)(depths).tolist() == [5, 700, 40]
        run = scalar(deep, max_depth=50).run(depths)
        assert run.status.tolist() == [Status.OK, Status.STACK_FULL, Status.OK]

    def test_runs_in_bits_go_on_from_a_file(self, tmp_path: Path) -> None:
        begun = scalar(classical).start(NUMBERS).advance(max_trips=3)
        assert not begun.done
        begun.save(tmp_path / "run")
        assert scalar(classical).load(tmp_path / "run").advance().result().value.tolist() == RESULTS

    def test_statistics_count_lanes_in_both_parts(self) -> None:
        runs = [
            pcbatch.batch(classical, plan=pcbatch.Plan(emitter=e, fork="never", unroll=1), stats=True).run(NUMBERS)
            for e in EMITTERS
        ]
        mixed, wide = (sorted(int(block.active) for block in run.stats.blocks) for run in runs)
        assert mixed == wide

    def test_inside_jit_and_vmap(self) -> None:
        f = scalar(classical, max_depth=20)
        assert jax.jit(f)(NUMBERS).tolist() == RESULTS
        assert jax.jit(jax.vmap(f))(np.stack([NUMBERS, NUMBERS[::-1]])).tolist() == [RESULTS, RESULTS[::-1]]


EMITTERS = ("scalar", "guard")


def walks(x, n):
    """Vectors that are saved by a recursion and replaced, and a list in which elements are stored."""
    if n == 0:
        return x
    seen = []
    for k in range(n):
        seen.append(x[k % 4])
        seen[k // 2] += 1.0
    y = walks(jnp.sin(x) * 2.0, n - 1)
    return x + y * sum(seen)


@pytest.mark.parametrize("parity", [0, 1])
@pytest.mark.parametrize("x64", [False, True])
def test_vectors_and_stacks_stay_with_those_of_all_lanes(
    parity: int, x64: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(worth, "is_outside", lambda block, lanes: int(block.label.removeprefix("bb")) % 2 == parity)
    with jax.enable_x64(x64):
        x = np.random.default_rng(0).normal(size=(5, 4)).astype(np.float64 if x64 else np.float32)
        n = np.array([0, 3, 1, 5, 2], np.int32)
        f = scalar(walks)
        m = machine(f, x, n)
        assert {*m.layout.buffers} < in_place(m.scalar_layout, m.costs, m.outside(5))
        np.testing.assert_allclose(
            f(x, n), [walks(jnp.asarray(a), int(k)) for a, k in zip(x, n, strict=True)], rtol=1e-5
        )


def test_no_array_of_all_lanes_is_copied_in_a_trip(monkeypatch: pytest.MonkeyPatch) -> None:
    """Neither frames nor vectors: copies of them took more time than all else."""
    monkeypatch.setattr(worth, "is_outside", lambda block, lanes: block.expensive)

    def search(x, w, n):
        if n == 0:
            return x
        left = search(jnp.tanh(w @ x), w, n - 1)
        return left + x

    f = pcbatch.batch(search, plan=pcbatch.Plan(emitter="scalar"), in_axes=(0, None, 0), max_depth=30)
    x, w, n = np.ones((50, 40), np.float32), np.eye(40, dtype=np.float32), np.arange(50, dtype=np.int32) % 20
    assert machine(f, x, w, n).outside(50)
    text = jax.jit(f).lower(x, w, n).compile().as_text()
    copies = [
        line for line in text[: text.index("ENTRY")].splitlines() if re.search(r"(50,41|50,40)\]\S* copy\(", line)
    ]
    assert not [line for line in copies if "jit(function)" in line]


class TestChoice:
    def test_explained(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr("pcbatch.runtime.execute.executor.one_by_one", lambda *args: worth.Widths(worth.WIDTHS))
        explained = pcbatch.batch(classical, plan=pcbatch.Plan(fork="never")).explain_schedule(NUMBERS)
        assert not pcbatch.batch(classical).explain_schedule(NUMBERS).runs_alone  # its calls gather in lists
        plan = scalar(classical).explain_schedule(NUMBERS)
        assert plan.outside and f"emitter  scalar, and {', '.join(plan.outside)} for all lanes at once" in str(plan)
        assert explained.outside and f", and {', '.join(explained.outside)} for all lanes at once" in str(explained)

    @staticmethod
    def block(alone: float, expensive: bool = True) -> BlockCost:
        return BlockCost("bb", alone, 3.0, 3, 1.0, expensive, False, alone=alone)

    def test_expensive_blocks_of_many_lanes(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.undo()
        assert worth.is_outside(self.block(1e5), 64) and not worth.is_outside(self.block(1e5), 1)
        assert not worth.is_outside(self.block(1e3), 64) and not worth.is_outside(self.block(1e5, expensive=False), 64)

    def test_a_lane_with_a_large_state_computes_by_itself(self, monkeypatch: pytest.MonkeyPatch) -> None:
        """To cut the registers of each lane out, and to put them back, takes longer than the block saves."""
        monkeypatch.undo()
        block = self.block(1e5)
        assert not worth.is_outside(dataclasses.replace(block, cut=1e5), 64)
        assert worth.is_outside(dataclasses.replace(block, cut=1e2), 64)

    def test_widths(self) -> None:
        some = worth.Widths((1, 2, 4, 64, 128, 1024))
        assert str(some) == "fewer than 8 or 64 to 255 or 1,024 and more"
        assert [n in some for n in (1, 7, 8, 63, 64, 255, 256, 1023, 5000)] == [1, 1, 0, 0, 1, 1, 0, 0, 1]
        assert str(worth.Widths(worth.WIDTHS)) == "any number of" and not worth.Widths()

    def test_the_loop_nest_without_blocks(self) -> None:
        program = machine(scalar(endless), NUMBERS).program
        whole, part = loop_nest(program), loop_nest(program, {1})
        assert set(blocks_of(whole)) - set(blocks_of(part)) == {1}


def test_every_block_is_outside(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(worth, "is_outside", lambda block, lanes: True)
    assert scalar(classical)(NUMBERS).tolist() == RESULTS
    assert scalar(lambda x: x + 1)(NUMBERS).tolist() == (NUMBERS + 1).tolist()


class TestLibraries:
    """Operations that no native function holds make their blocks blocks outside."""

    @staticmethod
    def walk(a, n):
        steps = []
        x = jnp.ones(3, jnp.float32)
        while len(steps) < n:
            x = jnp.linalg.solve(a, x)
            k = 0
            while k < 5 and x[k % 3] > 0.1 * k:
                k += 1
            steps.append(k)
        return x, steps

    def test_linear_algebra(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.undo()
        a = np.stack([np.eye(3, dtype=np.float32) * (1 + 0.1 * k) for k in range(6)])
        n = np.arange(6, dtype=np.int32)
        f = scalar(self.walk)
        x, steps = f(a, n)
        assert isinstance(machine(f, a, n), ScalarMachine) and machine(f, a, n).outside(1)
        for k in range(6):
            want, counts = self.walk(jnp.asarray(a[k]), int(n[k]))
            np.testing.assert_allclose(x[k], want, rtol=1e-5)
            assert steps[k].tolist() == [int(count) for count in counts]
        assert jax.jit(f)(a, n)[0].tolist() == x.tolist()
        assert pcbatch.batch(self.walk).run(a, n).value[1].tolist() == steps.tolist()
