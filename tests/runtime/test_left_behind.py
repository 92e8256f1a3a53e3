"""Drains that leave a few lanes behind, and the estimates that decide for how many."""

from __future__ import annotations

import jax.numpy as jnp
import numpy as np

import pcbatch
from pcbatch.ir.stack import StackProgram
from pcbatch.lowering.analysis.block_frequency import inner_loops, visits
from pcbatch.runtime.costs import plan_modes
from tests.oracles.plans import replanned
from tests.oracles.text.parser import parse_program

GRID = jnp.arange(24, dtype=jnp.float32)


def heavy(x):
    for _ in range(2):
        x = jnp.sin(GRID + x).sum()
    return x


@pcbatch.batch(plan=pcbatch.Plan(schedule="drain"), stats=True)
def rounds(n, m):
    total = jnp.float32(0.0)
    for _ in range(n):
        total = heavy(total)
        k = 0
        while k < m:
            k = k + 1
            total = total + 0.25
    return total


def plain(n: int, m: int) -> float:
    total = jnp.float32(0.0)
    for _ in range(n):
        total = heavy(total) + jnp.float32(0.25 * m)
    return float(total)


def test_results_do_not_depend_on_who_is_left_behind() -> None:
    n, m = jnp.arange(40) % 5, (jnp.arange(40) * 7) % 23
    want = [plain(int(a), int(b)) for a, b in zip(n, m, strict=True)]
    np.testing.assert_allclose(rounds(n, m), want, rtol=1e-4, atol=1e-4)


def test_a_trip_makes_one_sweep_at_least() -> None:
    # One lane goes through the cheap loop each time, the others never: it must not wait until they have ended.
    n, m = jnp.array([30] + [60] * 31), jnp.array([1] + [0] * 31)
    stats = replanned(rounds, modes=pcbatch.Dense()).run(n, m).stats
    assert stats is not None
    assert stats.trips < 75


def test_loops_in_one_block_count_as_loops_where_control_enters_there() -> None:
    @pcbatch.batch
    def both(n):
        total = 0
        while total < n:
            k = 0
            while k < n:
                k = k + 2
            j = 0
            while j < n:
                j = j + 3
            total = total + k + j
        return total

    opt = parse_program(both.lower(jnp.array([3])).as_text("opt"))
    assert isinstance(opt, StackProgram)
    often = visits(opt)
    assert inner_loops(opt, frozenset())
    assert sum(many == max(often.values()) for many in often.values()) >= 2  # both inner loops


def test_no_block_is_priced_at_nothing() -> None:
    free = plan_modes.BlockCost("bb0", 0.0, 0.0, 0, 1.0, expensive=False, loops=False)
    assert free.filled(64) >= 1
