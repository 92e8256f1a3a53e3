"""Random programs in a kernel end as in plain Python: every policy, tiles of several sizes, refill, blocks outside."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import pcbatch
from pcbatch.runtime.kernel import machine, qualify
from pcbatch.runtime.kernel.block_kernel import BlockKernel
from pcbatch.runtime.kernel.kernel_plan import KernelPlan
from pcbatch.runtime.vm.policies import POLICIES
from tests.oracles.interpreters import check_jax, prepare
from tests.programs.random_programs import TAPE, program_of

USUAL, ALL = 1, 60  # seeds
LANES = 5


def seeds(first: int) -> list[Any]:
    return [pytest.param(first + k, marks=() if k < USUAL else pytest.mark.full_only) for k in range(ALL)]


def check(seed: int) -> None:
    rng = np.random.default_rng(seed)
    case = prepare(program_of(rng.bytes(TAPE)), seed, LANES)
    options = {
        "emitter": pcbatch.Kernel(tile=int(rng.choice([2, 4, 8])), warps=1),
        "schedule": str(rng.choice(list(POLICIES))),
        "fork": "never",
        "max_steps": 100_000 if rng.random() < 0.2 else None,
    }
    lanes = None if rng.random() < 0.6 else int(rng.integers(1, LANES + 1))
    try:
        check_jax(case, options, lanes, jit=bool(rng.random() < 0.3))
    except pcbatch.UsageError as refused:
        assert "it prints" in str(refused)


@pytest.mark.parametrize("seed", seeds(0))
def test_in_one_kernel(seed: int) -> None:
    check(seed)


@pytest.mark.parametrize("seed", seeds(5000))
def test_with_blocks_between_kernels(seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Whichever blocks are computed for all lanes."""

    def chosen(plan: KernelPlan, block: BlockKernel) -> qualify.Obstacle | None:
        label = block.code.block.label
        return qualify.Obstacle("chosen", label) if (sum(label.encode()) + seed) % 3 == 0 else None

    monkeypatch.setattr(machine.qualify, "prefers_all_lanes", chosen)
    check(seed)
