"""Lists to which a round appends several results, or a known value in one arm of a branch."""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import pcbatch
from pcbatch.ir.forks import Fork, leaves
from pcbatch.ir.tasks import Give, spawns
from pcbatch.lowering.tasks import pipeline
from tests.oracles.interpret_cfg import interpret_cfg
from tests.oracles.interpret_tasks import interpret_tasks
from tests.oracles.numpy_jaxpr import on_numpy
from tests.programs.compare import assert_lanes_equal


def twice(n):
    """Two appends in each round."""
    if n <= 0:
        return 1.0
    found = []
    for k in range(n):
        found.append(twice(n - 2 - k))
        found.append(twice(n - 3 - k))
    return found[0] * 0.5 + found[-1] + len(found)


def one_arm(n):
    """A call in one arm of a conditional expression."""
    if n <= 0:
        return 1.0
    found = [one_arm(n - 1 - k) if k % 2 == 0 else 0.25 * float(n) for k in range(n)]
    return found[0] * 0.5 + found[-1] * 0.25 + sum(found)


def known_first(n):
    """Known values before the loop, between calls, and behind it."""
    if n <= 0:
        return 1.0
    found = [0.5]
    for k in range(n):
        found.append(known_first(n - 1 - k))
        found.append(0.125 * float(k))
    found.append(3.0)
    return found[0] + found[1] * 0.5 + found[-2] * 0.25 + found[-1] * 0.125


def other_list(n):
    """The second list is what the first one was, with one more."""
    if n <= 0:
        return 1.0
    found = [other_list(n - 1)]
    more = found + [other_list(n - 2)]
    found.append(other_list(n - 3))
    return found[0] + found[1] * 0.5 + more[1] * 0.25 + len(more)


PROGRAMS = [twice, one_arm, known_first, other_list]


@pytest.mark.parametrize("fn", PROGRAMS)
def test_lists_are_those_of_python(fn: Any) -> None:
    example: Any = jax.ShapeDtypeStruct((1,), "int32")
    cfg = pcbatch.batch(fn, plan=pcbatch.Plan(fork="never")).lower(example).stages.inlined_cfg
    tasks = pipeline.run(cfg, defers=False)
    assert tasks is not None
    for n in (0, 1, 2, 4):
        (want,), _ = interpret_cfg(on_numpy(cfg), [np.int32(n)])
        assert float(want) == pytest.approx(fn(n), rel=1e-5)
        for seed in (None, 1, 2):
            assert float(interpret_tasks(on_numpy(tasks), [np.int32(n)], seed=seed)[0][0]) == float(want), (n, seed)


@pytest.mark.share(2)
@pytest.mark.parametrize("fn", [one_arm, twice])
def test_by_tasks(fn: Any) -> None:
    values = jnp.array([3, 0, 2, 5, 1], jnp.int32)
    assert_lanes_equal(
        pcbatch.batch(fn, plan=pcbatch.Plan(fork="always"))(values), [fn(int(n)) for n in values], rtol=1e-5
    )


def test_an_arm_is_a_way_of_the_spawn() -> None:
    """One block for each round, whichever arm it takes."""
    example: Any = jax.ShapeDtypeStruct((1,), "int32")
    tasks = pipeline.run(pcbatch.batch(one_arm, plan=pcbatch.Plan(fork="never")).lower(example).stages.inlined_cfg)
    assert tasks is not None
    rounds = [op for block in tasks.blocks if block.open for op in spawns(block)]
    assert len(rounds) == 1
    assert isinstance(rounds[0].way, Fork)
    assert any(isinstance(way, Give) for way in leaves(rounds[0].way))
