"""`pcbatch.learn_schedule` as users have it: what is learned, kept in a file, and refused."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import pcbatch
from pcbatch.api.learn_schedule import sampled
from pcbatch.learning import learn
from pcbatch.learning.q_learning import Training
from tests.learning import random_policies
from tests.oracles.plans import replanned

pytestmark = [pytest.mark.share(3), pytest.mark.promotion("standard")]


def two_loops(x, n):
    """Lanes wait for several blocks."""
    total = x
    while n > 0:
        k = n
        while k > 2:
            total = jnp.sin(total) * x
            k = k // 2
        n = n - 1 if total > 0.5 else n - 2
    return total + (two_loops(x * 0.5, n + 2) if x > 0.3 else x)


def kinds(left, right, kind, node):
    """A tree whose inner nodes are of two kinds."""
    if left[node] < 0:
        return jnp.sin(kind[node] * 1.5)
    a = kinds(left, right, kind, left[node])
    b = kinds(left, right, kind, right[node])
    if kind[node] % 2 == 0:
        return jnp.tanh(a - b) + jnp.sum(jnp.outer(left, right) @ jnp.sin(kind * 0.5)) * 1e-3
    return a * 0.5 + b - jnp.sum(jnp.outer(right, left) @ jnp.cos(kind * 0.5)) * 1e-3


def quicksort(xs):
    """Lists that grow, as arguments and results."""
    if len(xs) <= 1:
        return xs
    pivot = xs[0]
    return quicksort([x for x in xs[1:] if x < pivot]) + [pivot] + quicksort([x for x in xs[1:] if x >= pivot])


def picky(n):
    """Some lanes raise."""
    if n < 0:
        raise ValueError(f"bad {n}")
    if n == 0:
        return 1.5
    return picky(n - 2) * 0.5 + picky(n - 1)


def branches(n):
    """Calls whose results a loop appends to a list, and whose number is such a result."""
    if n <= 1:
        return n + 1
    found = [branches(k) for k in range(n)]
    total = branches(found[-1] % n)
    for x in found:
        total = total + x % 7
    return total


LOOPS = (jnp.linspace(0.1, 1, 6), jnp.array([3, 7, 2, 9, 4, 12]))


def trees(count: int, seed: int) -> tuple[Any, ...]:
    """Random trees of at most 12 leaves."""
    rng = np.random.default_rng(seed)
    left, right = (np.full((count, 23), -1, np.int32) for _ in range(2))
    kind, root = rng.integers(0, 9, (count, 23)), np.zeros(count, np.int32)
    for row in range(count):
        free = list(range(int(rng.integers(1, 13))))
        after = len(free)
        while len(free) > 1:
            left[row, after], right[row, after] = (free.pop(int(rng.integers(len(free)))) for _ in range(2))
            free.append(after)
            after += 1
        root[row] = free[0]
    return tuple(jnp.asarray(x, jnp.int32) for x in (left, right, kind, root))


def close(found: Any, want: Any) -> None:
    np.testing.assert_allclose(np.asarray(found), np.asarray(want), rtol=1e-5, atol=1e-6)


def loops(count: int, seed: int = 0) -> tuple[Any, ...]:
    """Other arguments of `two_loops`."""
    rng = np.random.default_rng(seed)
    return jnp.asarray(rng.uniform(0.1, 1, count), jnp.float32), jnp.asarray(rng.integers(2, 14, count))


def task_of(f: Any, args: tuple[Any, ...]) -> learn.Task:
    return learn.task_of(f.fn, *sampled(f, args, {}))


@pytest.mark.parametrize("encoding", ["base", "max", "sort"])
def test_a_table_and_the_rule_for_lanes(encoding: str) -> None:
    f = pcbatch.batch(two_loops, plan=pcbatch.Plan(unroll=1, emitter="guard"))
    task = task_of(f, LOOPS)
    *others, rule, table = learn.candidates(task, Training(encoding, episodes=40))
    assert [policy.deployed for policy in others] == ["auto", "earliest", "largest", "drain"]
    assert (rule.deployed, table.deployed, table.machine) == ("lemma", "learned", "lanes")
    assert sum(task.graph.bounds()) == task.outcome(table).total < task.outcome(others[2]).total
    for policy, reason in ((rule, "the rule of the lemma, learned"), (table, "a learned schedule of")):
        fast = replanned(f, schedule=policy)
        close(fast(*LOOPS), f(*LOOPS))
        plan = fast.explain_schedule(*LOOPS)
        assert plan.policy == policy.deployed and plan.reason.startswith(reason)


def test_every_second_sample_is_held_out() -> None:
    """What is learned does not depend on them, and they alone are judged by."""
    f = pcbatch.batch(two_loops, plan=pcbatch.Plan(emitter="guard"))
    x, n = loops(12)
    made = [
        learn.candidates(task_of(f, (x, n.at[1::2].set(last))).part(0), Training(episodes=5)) for last in (n[1::2], 3)
    ]
    assert made[0] == made[1]
    policy = pcbatch.learn_schedule(f, x, n, episodes=5)
    assert policy == pcbatch.learn_schedule(f, x, n, episodes=5)
    found = policy.summary
    assert found is not None and (found.samples, found.deployed) == (6, policy.deployed)
    judged = task_of(f, (x[1::2], n[1::2]))
    assert found.bound == sum(judged.graph.bounds())
    assert found.policies["earliest"] == judged.outcome(replace(policy, deployed="earliest")).total


@pytest.mark.parametrize(
    "times", [{}, {"lemma": 0.96}, {"lemma": 0.9}, {"lemma": 0.9, "learned": 0.88, "largest": 2.0}]
)
def test_what_does_not_gain_is_not_deployed(times: dict[str, float]) -> None:
    """A more complicated policy has to gain 5% of estimated time, and 2% of measured time."""
    f = pcbatch.batch(two_loops, plan=pcbatch.Plan(emitter="guard"))
    task = task_of(f, LOOPS)
    policies = learn.candidates(task, Training(episodes=1))
    seconds = {policy.deployed: times.get(policy.deployed, 1.0) for policy in policies}
    measured = learn.best("two_loops", task, policies, "sort", seconds)
    wanted = "auto" if not times else "learned" if "learned" in times else "lemma"
    assert measured.deployed == wanted
    assert measured.summary is not None and f'deployed: "{wanted}"' in measured.report()
    said = {
        "auto": '0% less measured time than "earliest"',
        "lemma": 'time than "auto"',
        "learned": 'time than "lemma"',
    }
    assert said[wanted] in measured.report()
    estimated = learn.best("two_loops", task, policies, "sort")
    assert estimated.summary is not None
    costs = estimated.summary.times
    assert costs[estimated.deployed] <= min(costs.values()) / 0.95


def test_a_fixed_schedule_that_is_the_best_is_that_of_the_plan() -> None:
    """Where lanes run one after the other by themselves, no schedule is better."""
    f = pcbatch.batch(two_loops)
    policy = pcbatch.learn_schedule(f, *LOOPS, episodes=2)
    assert policy.deployed == "auto" and pcbatch.Plan(schedule=policy) == pcbatch.Plan()
    assert "faster one after the other" in policy.report()
    assert pcbatch.Plan(schedule=replace(policy, deployed="largest")) == pcbatch.Plan(schedule="largest")
    assert f.explain_schedule(*LOOPS).runs_alone


@pytest.mark.full_only
def test_measured_time() -> None:
    f = pcbatch.batch(two_loops, plan=pcbatch.Plan(emitter="guard"))
    policy = pcbatch.learn_schedule(f, *loops(8), episodes=2, seconds=20)
    assert policy.summary is not None and policy.summary.measured
    assert policy.deployed in policy.summary.times
    close(replanned(f, schedule=policy)(*LOOPS), f(*LOOPS))


@pytest.mark.full_only
def test_transformations_of_a_schedule_of_lanes() -> None:
    """The machine of gradients has other blocks."""
    f = pcbatch.batch(two_loops)
    x, n = LOOPS
    fast = replanned(f, schedule=random_policies.of_call(f, LOOPS, 1))
    close(jax.jit(fast)(x, n), f(x, n))
    close(fast.map(x, n, lanes=2).value, f(x, n))
    close(*(jax.grad(lambda x, g=g: jnp.sum(g(x, n)))(x) for g in (fast, f)))
    close(*(jax.jvp(lambda x, g=g: g(x, n), (x,), (x,))[1] for g in (fast, f)))
    for emitter in ("port", "guard"):
        close(replanned(fast, emitter=emitter)(x, n), f(x, n))


def test_a_schedule_of_calls_side_by_side() -> None:
    """Learned on some trees, run on others of another number."""
    f = pcbatch.batch(kinds).with_options(plan=pcbatch.Plan(fork="always"))
    policy = pcbatch.learn_schedule(f, *trees(24, 0), episodes=60)
    assert policy.machine == "tasks" and policy.summary is not None
    counts = policy.summary.policies
    assert policy.deployed in ("lemma", "learned")
    assert policy.summary.bound <= counts[policy.deployed] <= 1.2 * policy.summary.bound
    assert counts[policy.deployed] < counts["auto"]
    some = trees(9, 1)
    fast, want = replanned(f, schedule=policy), replanned(f, fork="never")(*some)
    close(fast(*some), want)
    close(jax.jit(fast)(*some), want)
    assert " samples held out" in fast.explain_schedule(*some).calls


@pytest.mark.full_only
@pytest.mark.parametrize("seed", range(3))
def test_tables_at_random_change_no_result(seed: int) -> None:
    f = pcbatch.batch(kinds).with_options(plan=pcbatch.Plan(fork="always"))
    some = trees(7, seed)
    fast = replanned(f, schedule=random_policies.of_call(f, some, seed))
    close(fast(*some), replanned(f, fork="never")(*some))


@pytest.mark.full_only
def test_lists_that_grow_and_lanes_that_raise() -> None:
    f = pcbatch.batch(quicksort).with_options(plan=pcbatch.Plan(fork="always"))
    xs = pcbatch.ragged([[3, 1, 2], [5], [], list(range(40, 0, -1))])
    fast = replanned(f, schedule=random_policies.of_call(f, (xs,), 2))
    assert fast(xs).tolist() == [[1, 2, 3], [5], [], list(range(1, 41))]
    g = pcbatch.batch(picky).with_options(plan=pcbatch.Plan(fork="always"))
    n = jnp.array([4, 3, 6, 0])
    slow = replanned(g, schedule=random_policies.of_call(g, (n,), 4))
    result = slow.run(n)
    want = replanned(g, fork="never").run(n)
    assert result.status.tolist() == want.status.tolist()
    policy = replace(pcbatch.learn_schedule(g, n, episodes=5), deployed="lemma")
    assert replanned(g, schedule=policy).run(n).status.tolist() == want.status.tolist()


@pytest.mark.full_only
def test_results_that_a_loop_appends_to_a_list() -> None:
    f = pcbatch.batch(branches).with_options(plan=pcbatch.Plan(fork="always"))
    n = jnp.array([3, 1, 5, 4])
    policy = replace(pcbatch.learn_schedule(f, n, episodes=5), deployed="lemma")
    assert replanned(f, schedule=policy)(n).tolist() == [branches(k) for k in n.tolist()]
    assert policy.machine == "tasks"


def test_shared_arguments_that_a_transformation_maps() -> None:
    """What lanes share becomes a value of each, which is another program with the same blocks."""
    f = pcbatch.batch(two_loops).with_options(in_axes=(None, 0))
    x, n = jnp.float32(0.8), LOOPS[1]
    fast = replanned(f, schedule=random_policies.of_call(f, (x, n), 5))
    close(*(jax.vmap(g, in_axes=(0, None))(jnp.array([0.8, 0.2]), n) for g in (fast, f)))


def test_a_file(tmp_path: Path) -> None:
    f = pcbatch.batch(two_loops)
    task = task_of(f, LOOPS)
    policy = learn.best("two_loops", task, learn.candidates(task, Training(episodes=5))[-1:], "sort")
    assert policy.deployed == "learned"
    policy.save(tmp_path / "policy.json")
    again = pcbatch.Learned.load(tmp_path / "policy.json")
    assert (again, again.summary) == (policy, policy.summary)
    assert again.report() == policy.report()
    close(replanned(f, schedule=again)(*LOOPS), f(*LOOPS))
    policy.html(tmp_path / "policy.html")
    assert "lower bound" in (tmp_path / "policy.html").read_text()


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (lambda found: "no JSON", "holds no learned schedule"),
        (lambda found: [], "holds no learned schedule"),
        (lambda found: found | {"version": 9}, "of version 9, not 2"),
        (lambda found: found | {"labels": []}, "is damaged"),
        (lambda found: found | {"ahead": [[1.0, 0.0], [1.0]]}, "is damaged"),
        (lambda found: found | {"deployed": "best"}, "is damaged"),
        (lambda found: found | {"tables": [["sort", [[0]], [0]]]}, "is damaged"),
        (lambda found: found | {"machine": "other"}, "is damaged"),
        (lambda found: found | {"summary": {"function": "f"}}, "is damaged"),
    ],
)
def test_a_file_that_is_no_schedule(change: Callable[[Any], Any], said: str, tmp_path: Path) -> None:
    path = tmp_path / "policy.json"
    random_policies.random_policy("lanes", ["bb0", "bb1"], "abc", 0).save(path)
    changed = change(json.loads(path.read_text()))
    path.write_text(changed if isinstance(changed, str) else json.dumps(changed))
    with pytest.raises(pcbatch.UsageError, match=said):
        pcbatch.Learned.load(path)


def test_a_schedule_is_refused_for_another_function() -> None:
    policy = random_policies.of_call(pcbatch.batch(two_loops), LOOPS, 0)
    with pytest.raises(pcbatch.UsageError, match="another program than that of `picky`"):
        pcbatch.batch(picky).with_options(plan=pcbatch.Plan(schedule=policy))(jnp.arange(3))


def test_the_class_is_no_schedule() -> None:
    with pytest.raises(pcbatch.UsageError, match="`pcbatch.learn_schedule"):
        pcbatch.batch(picky).with_options(plan=pcbatch.Plan(schedule=pcbatch.Learned))


def test_options_that_ask_for_lanes() -> None:
    f = pcbatch.batch(kinds).with_options(plan=pcbatch.Plan(fork="always"))
    some = trees(3, 0)
    policy = random_policies.of_call(f, some, 0)
    with pytest.raises(pcbatch.UsageError, match="runs in lanes: the option `modes` is for lanes"):
        replanned(f, schedule=policy, fork="auto", modes=pcbatch.Dense())(*some)
