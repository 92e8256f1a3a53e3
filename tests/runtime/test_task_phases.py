"""Phases of task programs: which blocks wait for others, and that this saves visits and changes no result."""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import pcbatch
from pcbatch.lowering.left_out import without
from pcbatch.runtime.tasks import TaskExecutable, TaskOptions
from pcbatch.runtime.tasks.task_plan import follows, phases
from tests.oracles.plans import planned
from tests.runtime import task_programs as programs

pytestmark = pytest.mark.older_emitters

RNG = np.random.default_rng(0)
HIDDEN, EXAMPLES = 16, 6


def matrix() -> Any:
    return jnp.asarray(RNG.normal(size=(HIDDEN, HIDDEN)) * HIDDEN**-0.5, jnp.float32)


def grow(w, v, h, levels):  # type: ignore[no-untyped-def]
    """The sum of what all nodes of a tree say that grows from a vector."""
    h = jnp.tanh(w @ h)
    said = h @ v
    if levels > 0 and h[0] < 0.5:
        said = said + grow(w, v, h, levels - 1) + grow(w, v, -h, levels - 1)
    return said


def again(w, v, h, levels):  # type: ignore[no-untyped-def]
    """A second tree grows from what the first one says."""
    return grow(v, w, jnp.sin(grow(w, v, h, levels)), 2)


ARGS = matrix(), matrix(), jnp.asarray(RNG.normal(size=(EXAMPLES, HIDDEN)), jnp.float32), jnp.arange(EXAMPLES) % 5
AXES = (None, None, 0, 0)


def batched(fn: Any, **options: Any) -> Any:
    return pcbatch.batch(fn, **planned(in_axes=AXES, fork="always", **options))


def executable(f: Any) -> TaskExecutable:
    found = f.lower(*ARGS).program.tasks
    assert isinstance(found, TaskExecutable)
    return found


def test_what_may_run_because_a_block_has_run() -> None:
    """A task that ends leads to the block after the `sync` at which a task waits for it."""
    edges = follows(programs.treelstm())
    assert {label: sorted(targets) for label, targets in edges.items()} == {
        "bb0": ["bb1", "bb2"],
        "bb1": ["bb1", "bb2", "bb3"],
        "bb2": ["bb3"],
        "bb3": ["bb3"],
    }


def test_a_phase_begins_behind_a_block_for_which_records_gather() -> None:
    """Blocks that lead to each other are of one phase, and nothing of the first one begins another."""
    program = programs.treelstm()
    assert phases(program, ["bb1"]) == {"bb0": 0, "bb1": 0, "bb2": 1, "bb3": 1}
    assert phases(program, ["bb1", "bb2"]) == {"bb0": 0, "bb1": 0, "bb2": 1, "bb3": 2}
    assert set(phases(program, ["bb3"]).values()) == {0}


def test_sums_of_outputs_wait_for_the_cells() -> None:
    f = batched(grow, stats=True)
    plan = executable(f).plan(single=False)
    dear = [block.label for block in plan.blocks if block.expensive]
    sums = [label for label in plan.joins if label not in {block.label for block in plan.last}]
    assert dear and sums
    assert [plan.phases[label] for label in dear] == [0] * len(dear)
    assert [plan.phases[label] for label in sums] == [1] * len(sums)
    assert "in 2 phases" in f.explain_schedule(*ARGS).calls


def visits(f: Any) -> tuple[int, Any]:
    """Visits of all lists of tasks, and the results."""
    run = f.run(*ARGS)
    return sum(int(block.visits) for block in run.stats.blocks), run.value


@pytest.mark.share(2)
@pytest.mark.parametrize("fn", [grow, again])
def test_phases_save_visits_and_change_no_result(fn: Any) -> None:
    with without("phases"):
        more, same = visits(batched(fn, stats=True))
    fewer, found = visits(batched(fn, stats=True))
    want = [fn(ARGS[0], ARGS[1], h, int(n)) for h, n in zip(ARGS[2], ARGS[3], strict=True)]
    np.testing.assert_allclose(found, np.stack(want), rtol=1e-4, atol=1e-5)
    np.testing.assert_allclose(same, np.stack(want), rtol=1e-4, atol=1e-5)
    assert fewer < 0.8 * more


@pytest.mark.share(2)
@pytest.mark.parametrize("frames", [9, 24])
def test_a_phase_runs_early_where_frames_are_missing(frames: int) -> None:
    """The first phase alone would need more frames than there are."""
    whole = executable(batched(again))
    run = TaskExecutable(whole.program, TaskOptions(width=4, frames=frames, reserve=4, max_bytes=1))
    args = dict(zip(whole.program.params, jax.tree.leaves(ARGS), strict=True))
    outcome = run.run(args, EXAMPLES)
    assert not outcome.unfinished.any()
    want = [again(ARGS[0], ARGS[1], h, int(n)) for h, n in zip(ARGS[2], ARGS[3], strict=True)]
    np.testing.assert_allclose(outcome.raw.values[0], np.stack(want), rtol=1e-4, atol=1e-5)
