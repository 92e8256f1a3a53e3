"""`max_depth` and `max_steps` of calls side by side: who fails, and with which status, is what lanes say."""

from __future__ import annotations

from typing import Any

import jax.numpy as jnp
import numpy as np
import pytest

import pcbatch
from pcbatch import Status
from tests.oracles.plans import planned
from tests.programs.compare import assert_lanes_equal


def pairs(n):
    """Two calls whose results meet."""
    if n <= 1:
        return 0.5
    return pairs(n - 2) * 0.5 + pairs(n - 1)


def endless(n):
    """A loop without end at 7, a recursion without end beyond."""
    if n == 7:
        while n > 0:
            n = n + 1 - 1
    if n > 7:
        return endless(n + 1) - endless(n + 2)
    if n <= 1:
        return 0.25
    return endless(n - 1) - endless(n - 2)


def spread(n):
    """A sum of integers, whose calls have no frames; one call is in tail position."""
    if n > 40:
        return spread(n - 40)
    if n <= 1:
        return 1
    return spread(n - 2) + spread(n - 1)


N = jnp.array([0, 9, 1, 2, 11, 3, 40], jnp.int32)
DEEP = jnp.array([0, 9, 1, 2, 11, 3, 83], jnp.int32)


def outcomes(fn: Any, values: Any, **options: Any) -> tuple[Any, Any]:
    """What tasks and lanes say."""
    found, want = (pcbatch.batch(fn, **planned(fork=fork, **options)).run(values) for fork in ("always", "never"))
    assert found.status.tolist() == want.status.tolist()
    np.testing.assert_array_equal(found.value, want.value)
    return found, want


@pytest.mark.share(2)
@pytest.mark.parametrize(("fn", "values"), [(pairs, N[:6]), (spread, DEEP)])
def test_calls_that_are_too_deep(fn: Any, values: Any) -> None:
    found, _ = outcomes(fn, values, max_depth=5)
    assert Status.STACK_FULL in found.status.tolist()
    for n, status, value in zip(values.tolist(), found.status.tolist(), found.value.tolist(), strict=True):
        if status == Status.OK:
            assert value == pytest.approx(fn(n))


def test_depth_that_is_enough() -> None:
    """Nothing fails, and no lane runs; of one example either."""
    limited = pcbatch.batch(pairs, plan=pcbatch.Plan(fork="always"), max_depth=10)
    assert_lanes_equal(limited(N[:6]), [pairs(int(n)) for n in N[:6]])
    program, given = limited._programs.of_call((N[:6],), {})
    assert program.tasks is not None
    outcome = program.tasks.run({v: N[:6] for v in program.tasks.program.params}, 6)
    assert not outcome.unfinished.any()
    assert pcbatch.batch(pairs, plan=pcbatch.Plan(fork="always"), max_depth=3).run(N[1:2]).status.tolist() == [
        Status.STACK_FULL
    ]


def test_what_has_no_end_ends() -> None:
    """With the others unharmed, loops and recursions alike."""
    values = jnp.array([0, 7, 3, 6, 8, 2, 4], jnp.int32)
    found, _ = outcomes(endless, values, max_steps=400)
    late = [n >= 7 for n in values.tolist()]
    assert found.status.tolist() == [Status.STEP_LIMIT if over else Status.OK for over in late]
    ended = found.value[~np.array(late)].tolist()
    assert ended == pytest.approx([endless(n) for n in values.tolist() if n < 7])


@pytest.mark.full_only
def test_one_example_without_end_ends() -> None:
    n = jnp.array([8], jnp.int32)
    assert pcbatch.batch(endless, plan=pcbatch.Plan(fork="always"), max_steps=400).run(n).status.tolist() == [
        Status.STEP_LIMIT
    ]


def test_the_limit_is_that_of_lanes_to_the_block() -> None:
    """Tasks count more than lanes: examples near the limit are decided by lanes."""
    lanes = pcbatch.batch(spread, plan=pcbatch.Plan(fork="never"), stats=True)
    needed = int(sum(block.active for block in lanes.run(DEEP[4:5]).stats.blocks))
    for most in (needed - 1, needed):
        found, _ = outcomes(spread, DEEP, max_steps=most)
        assert bool(found.status[4] == Status.OK) is (most == needed)
