"""Modes by cost: few lanes of small blocks are computed without asking, dear blocks in strips when few lanes come."""

from __future__ import annotations

from typing import Any

import jax.numpy as jnp
import numpy as np
import pytest

import pcbatch
from benchmarks.trip_kernels import per_trip
from pcbatch.lowering.analysis.cost import visit_cost
from pcbatch.runtime.costs.plan_modes import BlockCost, Costs
from tests.programs.classics import fib
from tests.programs.recursion import ackermann

ALWAYS = pcbatch.Dense(always=True)


def small(**changes: Any) -> BlockCost:
    """A block of a few operations on scalars."""
    usual = {"operations": 4.0, "words": 3.0, "arrays": 3, "often": 1.0, "expensive": False, "loops": False}
    return BlockCost("bb", **(usual | changes))


def modes(lanes: int, *blocks: BlockCost, sweeps: bool = True) -> list[pcbatch.Dense]:
    return list(Costs(blocks, {}, drains=not sweeps, sweeps=sweeps).modes(lanes))  # type: ignore[arg-type]


def chosen(fn: Any, lanes: int) -> set[Any]:
    """The modes of a function's blocks in so many lanes."""
    args = np.zeros(lanes, np.int32)
    compiled, _ = pcbatch.batch(fn, plan=pcbatch.Plan(fork="never"), numbers="jax")._compiled(
        (args,) * fn.__code__.co_argcount, {}
    )
    return set(compiled.executable.machine.modes(lanes))  # type: ignore[union-attr]


class TestDearBlocks:
    DEAR: dict[str, Any] = {"operations": 2e4}

    @pytest.mark.parametrize(("lanes", "width"), [(33, 8), (64, 8), (100, 8), (128, 16), (256, 32), (4096, 32)])
    @pytest.mark.parametrize("expensive", [False, True], ids=["visited in passing", "waited for"])
    def test_strips_of_an_eighth(self, lanes: int, width: int, expensive: bool) -> None:
        assert modes(lanes, small(**self.DEAR, expensive=expensive)) == [pcbatch.Strips(width)]

    def test_not_few_lanes(self) -> None:
        assert modes(32, small(**self.DEAR)) == [pcbatch.Dense()]

    def test_not_where_lanes_go_round_in_it(self) -> None:
        loop = small(**self.DEAR, often=9.0, loops=True, jumps=True)
        assert isinstance(modes(64, loop, small(), sweeps=False)[0], pcbatch.Dense)

    def test_not_cheap_ones(self) -> None:
        assert not any(isinstance(mode, pcbatch.Strips) for mode in modes(64, small(operations=2000.0)))


class TestBlocksThatAreAlwaysComputed:
    def test_few_lanes(self) -> None:
        assert modes(16, small()) == [ALWAYS]

    def test_not_many_lanes(self) -> None:
        assert modes(1024, small()) == [pcbatch.Dense()]

    def test_not_where_a_trip_drains(self) -> None:
        assert modes(16, small(), sweeps=False) == [pcbatch.Dense()]

    @pytest.mark.parametrize("changes", [{"operations": 400.0}, {"arrays": 7}, {"stores": True}], ids=str)
    def test_not_large_ones_nor_those_that_store_in_place(self, changes: dict[str, Any]) -> None:
        assert modes(16, small(**changes)) == [pcbatch.Dense()]

    def test_not_where_hardly_any_lane_is_expected(self) -> None:
        assert modes(16, small(), small(often=0.01)) == [ALWAYS, pcbatch.Dense()]

    @pytest.mark.share(3)
    def test_a_trip_has_no_loop_inside(self) -> None:
        ns = np.arange(16, dtype=np.int32) % 9
        compiled = pcbatch.batch(fib, plan=pcbatch.Plan(fork="never"), numbers="jax").lower(ns).compile()
        assert per_trip(compiled.as_text()).loops == 0
        assert np.asarray(compiled(ns)).tolist() == [fib(int(n)) for n in ns]

    def test_all_blocks_where_the_user_says_so(self) -> None:
        def halves(x):
            count = 0
            while x > 1:
                if x % 3 == 0:
                    count = count + jnp.where(x > 5, 2, 1)
                x = x // 2
            return count

        xs = np.arange(24, dtype=np.int32)
        assert pcbatch.batch(halves, plan=pcbatch.Plan(modes=ALWAYS))(xs).tolist() == [int(halves(int(x))) for x in xs]


class TestRepeatedBlocks:
    def test_a_hot_block_that_jumps_to_itself(self) -> None:
        assert [mode.spins > 0 for mode in modes(16, small(loops=True, jumps=True), small())] == [True, False]

    def test_a_hot_block_that_lanes_return_to_is_one_of_several(self) -> None:
        assert modes(1024, small(loops=True), small(loops=True)) == [pcbatch.Dense()] * 2

    def test_a_rarer_block_that_lanes_return_to(self) -> None:
        assert [mode.spins > 0 for mode in modes(1024, small(loops=True, often=0.5), small())] == [True, False]

    def test_programs(self) -> None:
        assert chosen(fib, 16) == {ALWAYS} and chosen(fib, 2048) == {pcbatch.Dense()}
        assert pcbatch.Dense(spins=4) in chosen(ackermann, 16)


def test_a_store_in_place_costs_what_is_stored() -> None:
    """Not the array that it is stored into: 32 for the store, and 4 for its element."""

    def fill(xs, n):
        while n > 0:
            xs = xs.at[n].set(1.0)
            n = n - 1
        return xs

    def cost(size: int) -> float:
        args = np.zeros((4, size), np.float32), np.zeros(4, np.int32)
        compiled, _ = pcbatch.batch(fill)._compiled(args, {})
        program = compiled.executable.program  # type: ignore[union-attr]
        types = {v: var.type for v, var in program.vars.items()}
        return sum(visit_cost(op, types) for block in program.blocks for op in block.ops)

    assert cost(100_000) == cost(1_000) < 100


def halved_after_rounds(rounds, x):
    """A loop over a vector in a loop."""
    for k in range(4):
        done = 0
        while done < rounds[k]:
            x = 0.9 * x + 0.1 / (1 + jnp.roll(x, 1) ** 2)
            done += 1
        x = 0.5 * x
    return x


def test_lanes_of_vectors_with_the_lanes_last_are_not_looked_up():
    """To gather and scatter words that are a cache line apart takes longer than to compute all lanes."""
    rounds, x = jnp.full((1024, 4), 3), jnp.ones((1024, 32))
    f = pcbatch.batch(halved_after_rounds)
    inner = [row for row in f.explain_schedule(rounds, x).rows if "0.5 * x" in row.text]
    assert [row.mode.partition(",")[0] for row in inner] == ["dense"]
    np.testing.assert_allclose(f(rounds, x)[7], halved_after_rounds([3] * 4, jnp.ones(32)), rtol=1e-5)
