"""The work that XLA is given, as counts: modules, machines in them, fused kernels. Time follows these; none is taken.

Limits are a tenth above what was counted with one version of XLA: a change that asks XLA for more says so here.
"""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
import pytest

import pcbatch
from benchmarks.compile_stages import events, fusions
from benchmarks.fifty_lines import PROGRAMS
from pcbatch.plan import Few

pytestmark = [pytest.mark.share(2), pytest.mark.promotion("standard")]

LANES = 8
KERNELS = {"mortgage": 41, "march": 72}
OF_GRADIENTS = {"mortgage": 160, "march": 330}


def forward(name: str, lanes: int = LANES) -> tuple[pcbatch.Batched, tuple[Any, ...]]:
    program = PROGRAMS[name]
    return pcbatch.batch(program.function), tuple(map(jnp.asarray, program.arguments(lanes)))


def gradient(name: str) -> tuple[Any, tuple[Any, ...]]:
    f, args = forward(name)
    return jax.jit(jax.value_and_grad(lambda *args: jnp.sum(f.with_options(max_tape=256)(*args)))), args


def test_a_first_call_compiles_one_module_of_ours() -> None:
    f, args = forward("mortgage")
    with events() as heard:
        jax.block_until_ready(f(*args))
    assert [name for name in heard.modules if "run_whole" in name] == ["jit(run_whole_direct)"]
    with events() as heard:
        jax.block_until_ready(f(*args))
    assert heard.modules == []


def test_a_value_and_gradient_is_one_module_with_two_machines() -> None:
    """The run and the one that undoes it, for which each lane runs again: the value comes from the first."""
    step, args = gradient("mortgage")
    with events() as heard:
        jax.block_until_ready(step(*args))
    assert len([name for name in heard.modules if "lambda" in name]) == 1
    operations = str(jax.make_jaxpr(step)(*args))
    assert operations.count("= pcbatch[") == 2
    assert "operation=repeatable run" in operations and "operation=backward run" in operations


def test_cheap_blocks_compute_all_lanes() -> None:
    """Looking lanes up makes four kernels of each array, which take longer to compile and to run."""
    f, args = forward("knights", 256)
    program = f.lower(*args).program
    assert program is not None
    few = [mode for mode in program.executable.costs.modes(256) if isinstance(mode, Few)]
    assert len(few) <= 2  # of 56 blocks


@pytest.mark.parametrize("name", KERNELS)
def test_kernels_of_a_run(name: str) -> None:
    f, args = forward(name)
    assert fusions(f.lower(*args).compile().as_text()) <= KERNELS[name]


@pytest.mark.full_only
@pytest.mark.parametrize("name", OF_GRADIENTS)
def test_kernels_of_a_gradient(name: str) -> None:
    step, args = gradient(name)
    assert fusions(step.lower(*args).compile().as_text()) <= OF_GRADIENTS[name]
