"""Simulated visits: those that the machines make, block by block, whatever the policy."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import pcbatch
from pcbatch.ir.tasks import TaskProgram
from pcbatch.learning import learn
from pcbatch.learning.q_learning import Training
from pcbatch.learning.task_graph import simulate
from pcbatch.runtime.learned import encodings
from pcbatch.runtime.learned.policy import Learned
from pcbatch.runtime.tasks import TaskExecutable, TaskOptions
from pcbatch.runtime.tasks.trip import chosen_among
from pcbatch.runtime.vm import wide_counters
from tests.learning import random_policies
from tests.oracles.plans import replanned
from tests.runtime import task_programs as programs
from tests.shares import examples as examples_of


def fibs() -> dict[str, Any]:
    return {"n": np.array([0, 9, 1, 2, 11, 3, 0], np.int32)}


def loops() -> dict[str, Any]:
    return {"n": np.array([0, 3, 5, 1, 4], np.int32), "width": np.array([4, 2, 1, 5, 3], np.int32)}


def boards() -> dict[str, Any]:
    board = np.array([31, 15, 1, 7], np.int32)
    zero = np.zeros_like(board)
    return {"free": board, "columns": zero, "left": zero, "right": zero, "board": board}


def trees() -> dict[str, Any]:
    rng = np.random.default_rng(0)
    w, e = (rng.normal(size=shape).astype(np.float32) for shape in ((5, 5), (7, 5)))
    some = [programs.tree(k, leaves) for k, leaves in enumerate([9, 1, 16, 2, 5])]
    left, right, word = (np.stack(x) for x in zip(*some, strict=True))
    return {"w": w, "e": e, "left": left, "right": right, "word": word}


def mutual() -> dict[str, Any]:
    return {"n": np.array([0, 5, 9, 2, 7], np.int32), "x": np.array([1, 2, 0.5, -1, 3], np.float32)}


CASES = {
    "frames": (programs.fib_frames, fibs),
    "plain frames": (programs.fib_plain_frames, fibs),
    "sums": (programs.fib_sums, fibs),
    "plain sums": (lambda: programs.fib_sums(peeled=False), fibs),
    "loop": (programs.loop_into_frame, loops),
    "queens": (programs.queens_sums, boards),
    "tree": (programs.treelstm, trees),
    "mutual": (programs.mutual, mutual),
}


def examples(program: TaskProgram, args: Mapping[str, Any]) -> list[dict[str, Any]]:
    """The arguments of each example."""
    many = max(len(x) for v, x in args.items() if v not in program.shared)
    return [{v: jnp.asarray(x if v in program.shared else x[k]) for v, x in args.items()} for k in range(many)]


def machine_visits(
    program: TaskProgram, args: Mapping[str, Any], policy: Learned, lanes: int
) -> tuple[list[int], list[np.ndarray]]:
    """The visits of the blocks that a policy chooses among, and the results."""
    tasks = TaskExecutable(program, TaskOptions(width=1024, frames=8192, stats=True, policy=policy))
    outcome = tasks.run(args, lanes)
    plan = tasks.plan(single=False)
    counts = wide_counters.value(outcome.raw.counts[0])
    chosen = [block.number for block in chosen_among(plan)]
    return [int(counts[k]) for k in chosen], [np.asarray(x) for x in outcome.raw.values]


@pytest.mark.parametrize("seed", range(2))
@pytest.mark.parametrize("case", list(CASES))
@pytest.mark.share(16)
def test_a_machine_of_lists_makes_the_visits_that_are_simulated(case: str, seed: int) -> None:
    make, given = CASES[case]
    program, args = make(), given()
    some = examples(program, args)
    tasks = TaskExecutable(program, TaskOptions(width=1024))
    task = learn.of_tasks(tasks, some)
    policy = random_policies.of_plan(tasks.plan(single=False), seed)
    made, _ = machine_visits(program, args, policy, len(some))
    assert made == simulate(task.graph, lambda run: policy.choose(run.waiting)).visits.tolist()


@pytest.mark.parametrize("case", list(CASES))
@pytest.mark.share(8, 6)
def test_results_are_those_of_the_machine_without_a_schedule(case: str) -> None:
    """Also with tables at random, whose blocks may be such as nothing waits for, and little room."""
    make, given = CASES[case]
    program, args = make(), given()
    lanes = len(examples(program, args))
    wanted = [np.asarray(x) for x in TaskExecutable(program, TaskOptions(width=64)).run(args, lanes).raw.values]
    for seed, size in enumerate(({"width": 64}, {"width": 4, "frames": 9, "reserve": 2, "room": 8}, {"width": 1})):
        policy = random_policies.of_plan(TaskExecutable(program).plan(single=False), seed + 7)
        outcome = TaskExecutable(program, TaskOptions(policy=policy, **size)).run(args, lanes)
        assert not outcome.unfinished.any()
        for found, want in zip(outcome.raw.values, wanted, strict=True):
            np.testing.assert_allclose(np.asarray(found), want, rtol=2e-5, atol=1e-6)


def slow(n, k):
    """Two loops and a recursion: several blocks that lanes wait for."""
    total = 0
    while n > 0:
        j = k
        while j > n:
            total = total + j
            j = j // 2
        n = n - 1 if total % 3 else n - 2
    return total + (slow(k - 3, k - 5) if k > 4 else 1)


def test_a_machine_of_lanes_makes_the_visits_that_are_simulated() -> None:
    f = pcbatch.batch(slow).with_options(plan=pcbatch.Plan(modes=pcbatch.Dense(), emitter="guard"), stats=True)
    n, k = jnp.array([3, 9, 1, 7, 4]), jnp.array([10, 3, 17, 9, 30])
    program, given = f._programs.of_call((n, k), {})
    task = learn.of_lanes(program, given, "")
    want = f(n, k)
    np.testing.assert_array_equal(want, [slow(int(a), int(b)) for a, b in zip(n, k, strict=True)])
    for seed in range(examples_of(3, 1)):
        policy = random_policies.of_call(f, (n, k), seed)
        result = replanned(f, schedule=policy).run(n, k)
        made = simulate(task.graph, lambda run, policy=policy: policy.choose(run.waiting))
        assert [int(block.visits) for block in result.stats.blocks] == made.visits.tolist()
        assert result.stats.trips == made.total
        np.testing.assert_array_equal(result.value, want)


@pytest.mark.parametrize("modes", [None, pcbatch.Dense()])
def test_fixed_schedules_make_the_visits_that_are_simulated(modes: pcbatch.Dense | None) -> None:
    """Each in its own order of blocks; under modes of their own, blocks are repeated."""
    f = pcbatch.batch(slow).with_options(plan=pcbatch.Plan(modes=modes, emitter="guard"), stats=True)
    n, k = jnp.array([3, 9, 1, 7, 4, 6, 12, 2] * 4), jnp.array([10, 3, 17, 9, 30, 21, 8, 5] * 4)
    program, given = f._programs.of_call((n, k), {})
    task = learn.task_of(f.fn, program, given)
    for policy in learn.candidates(task, Training(episodes=1)):
        result = replanned(f, schedule=policy).run(n, k)
        made = [int(block.visits) for block in result.stats.blocks]
        assert sorted(made) == sorted(task.outcome(policy).visits.tolist()), policy.deployed


@pytest.mark.parametrize("encoding", encodings.ENCODINGS)
def test_states_are_equal_on_the_host_and_inside_a_trace(encoding: str) -> None:
    rng = np.random.default_rng(0)
    traced = jax.jit(lambda x: encodings.traced_digits(encoding, x))
    for _ in range(30):
        waiting = rng.integers(0, 4, 6)
        assert tuple(traced(jnp.asarray(waiting, jnp.int32)).tolist()) == encodings.digits(encoding, waiting)


def test_choices_are_equal_on_the_host_and_inside_a_trace() -> None:
    rng = np.random.default_rng(0)
    for seed in range(6):
        policy = random_policies.random_policy("tasks", [f"bb{k}" for k in range(5)], "", seed)
        traced = jax.jit(policy.chosen)
        for _ in range(20):
            waiting = rng.integers(0, 3, 5)
            if waiting.any():
                assert int(traced(jnp.asarray(waiting, jnp.int32))) == policy.choose(waiting)


def test_equal_seeds_learn_equal_tables() -> None:
    program, args = programs.fib_frames(), fibs()
    tasks = TaskExecutable(program)
    learned = [
        learn.learn_task("fib", learn.of_tasks(tasks, examples(program, args)), Training(episodes=20, seed=3))
        for _ in range(2)
    ]
    assert learned[0] == learned[1]
    assert learned[0].summary == learned[1].summary
