"""Checks of primitives: the lane raises what Python raises, and the others go on."""

from __future__ import annotations

import jax.numpy as jnp
import numpy as np
import pytest

import pcbatch
from pcbatch.data.capacity import NESTED_FACTORS, next_capacities
from pcbatch.data.checks import require
from pcbatch.ir.ops import Branch, Check
from pcbatch.lowering.cfg_passes import lower_checks


def element(xs, i):
    require(i < xs.shape[0], "IndexError", "no element ", i)
    return xs[i]


@pcbatch.batch
def leading(xs):
    count = 0
    while count < 5 and element(xs, count) > 0:
        count += 1
    return element(xs, count)


XS = jnp.array([[1, 2, 0], [0, 1, 1], [1, 2, 3]])


def test_a_lane_fails_alone() -> None:
    result = leading.run(XS)
    assert result.status.tolist() == [0, 0, 5]
    assert np.asarray(result.value)[:2].tolist() == [0, 0]


def test_the_message_shows_values() -> None:
    with pytest.raises(pcbatch.BatchRuntimeError, match=r"IndexError[\s\S]*no element 3"):
        leading(XS)


def test_plain_values_raise_at_once() -> None:
    with pytest.raises(IndexError, match="no element 3"):
        leading.plain(np.array([1, 2, 3]))


def test_a_check_in_an_arm_of_a_condition_is_no_block() -> None:
    """The second half of the condition is computed for all lanes, and its check counts for those that need it."""
    assert len([b for b in leading.lower(XS).stages.opt.blocks if b.ops]) == 2


def test_checks_of_a_block_share_one_branch() -> None:
    @pcbatch.batch(numbers="jax")
    def total(xs, i):
        return element(xs, i) + element(xs, i + 1) + element(xs, i + 2)

    cfg = total.lower(XS, jnp.array([0, 0, 0])).stages.cfg
    checks = [op for block in cfg.functions[0].blocks for op in block.ops if isinstance(op, Check)]
    lowered = lower_checks.run(cfg).functions[0].blocks
    assert len(checks) == 3
    assert len([b for b in lowered if isinstance(b.terminator, Branch) and b.ops]) == 1
    with pytest.raises(pcbatch.BatchRuntimeError, match=r"no element 3"):
        total(XS, jnp.array([0, 1, 0]))


def test_the_first_check_that_fails_decides() -> None:
    @pcbatch.batch
    def total(xs, i):
        return element(xs, i) + element(xs, i + 1)

    with pytest.raises(pcbatch.BatchRuntimeError, match="no element 7"):
        total(XS, jnp.array([0, 7, 0]))


def test_a_lane_that_has_failed_prints_nothing(capsys: pytest.CaptureFixture[str]) -> None:
    @pcbatch.batch
    def shown(xs, i):
        x = element(xs, i)
        print("element", i)
        return x

    assert shown.run(XS, jnp.array([0, 7, 2])).status.tolist() == [0, 5, 0]
    lines = capsys.readouterr().out.split("\n")
    assert sorted(lines) == ["", "[lane 0] element 0", "[lane 2] element 2"]


def test_capacities_cover_what_lanes_need() -> None:
    assert next_capacities(32, 1000, 2**20) == (1024,)
    assert next_capacities(32, 40, 2**20) == (128, 64)
    assert next_capacities(32, 40, 2**20, NESTED_FACTORS) == (64,)
    assert next_capacities(32, 1000, 256) == (256,)
    assert next_capacities(256, 1000, 256) == ()
