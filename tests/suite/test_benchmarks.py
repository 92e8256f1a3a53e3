"""The benchmarks measure what they say: all ways to solve a problem agree, and the report holds every number.

Nothing is timed here.
"""

from __future__ import annotations

import importlib
import inspect
import json
import random
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import pcbatch
from benchmarks import (
    against,
    break_even,
    common,
    compile_stages,
    cpython,
    devices,
    first_call,
    frames,
    narrowing,
    numba_peer,
    nuts,
    policies,
    queue,
    samplers,
    summary,
    tree_objects,
    trips,
)
from benchmarks.__main__ import chosen_jobs
from benchmarks.common import Curve, Row
from benchmarks.cpython_programs import PROGRAMS as STRANGERS
from benchmarks.cpython_programs import classics, sorting
from benchmarks.cpython_programs.program import Program
from benchmarks.fifty_lines import PROGRAMS
from benchmarks.jobs import JOBS, Job, run
from benchmarks.object_programs import PROGRAMS as OBJECTS
from benchmarks.queues import __main__ as queues
from benchmarks.queues import fit, march, ode, ssa
from benchmarks.queues.peers import in_rounds, one_by_one, single, together, utilisation
from benchmarks.recursions import RECURSIONS
from tests.strangers.rows import argument, as_plain, lane_of

pytestmark = [pytest.mark.share(3), pytest.mark.long, pytest.mark.promotion("standard")]

PROBLEMS = [module.PROBLEM for module in (ode, ssa, march, fit)]


def easy(name: str) -> tuple[Any, ...]:
    """Two inputs that take a few steps."""
    match name:
        case "ode":
            return (jnp.array([1.0, 3.0], jnp.float32),)
        case "ssa":
            return jnp.array([[5, 1, 0.02, 1], [2, 3, 0.1, 1]], jnp.float32), jax.random.split(jax.random.key(0), 2)
        case "march":
            return (march.inputs(100)[0][jnp.array([0, 99])],)
        case _:
            return (fit.inputs(2)[0],)


def lane(args: tuple[Any, ...], k: int) -> tuple[Any, ...]:
    return jax.tree.map(lambda a: a[k], args)


@pytest.mark.full_only
@pytest.mark.parametrize("problem", PROBLEMS, ids=lambda p: p.name)
def test_every_way_to_solve_a_problem_agrees(problem: Any) -> None:
    inputs = easy(problem.name)
    one = single(problem.loop)
    plain = [pcbatch.batch(problem.solve).plain(*lane(inputs, k)) for k in range(2)]
    expected = np.stack([np.asarray(answer) for answer, _ in plain])
    steps = np.array([int(count) for _, count in plain])
    ways = {"ours": queue.ours(pcbatch.batch(problem.solve)), "all": together(one), "map": one_by_one(one)}
    for name, way in (ways | {"rounds": in_rounds(one, 1)}).items():
        answer, count = way(*inputs)
        assert queues.agreement(answer, expected, problem.tolerance) == 1.0, name
        np.testing.assert_allclose(count, steps, rtol=0.02, atol=1, err_msg=name)


@pytest.mark.parametrize("problem", PROBLEMS, ids=lambda p: p.name)
def test_inputs_are_as_many_as_asked_for(problem: Any) -> None:
    assert {leaf.shape[0] for leaf in jax.tree.leaves(problem.inputs(12))} == {12}


def test_results_that_differ_are_not_measured() -> None:
    right, wrong = (np.zeros((4, 2)), np.full(4, 5)), (np.ones((4, 2)), np.full(4, 5))
    queues.check(ode.PROBLEM, {queues.OURS: right, "peer": right})
    with pytest.raises(SystemExit, match="adaptive ODE: peer agrees on 0.0%, with 1.000 times our steps"):
        queues.check(ode.PROBLEM, {queues.OURS: right, "peer": wrong})
    with pytest.raises(SystemExit, match="2.000 times"):
        queues.check(ode.PROBLEM, {queues.OURS: right, "peer": (right[0], np.full(4, 10))})


def test_utilisation_of_rounds() -> None:
    steps = np.array([1, 3, 4, 4])
    assert utilisation(steps, 1) == 1.0
    assert utilisation(steps, 2) == 12 / (2 * (3 + 4))
    assert utilisation(steps, 4) == 12 / 16


def test_a_queue_uses_map_where_there_is_one() -> None:
    class Streaming:
        def map(self, *xs: Any, lanes: int | None) -> Any:
            return SimpleNamespace(value=(xs, lanes))

    assert queue.ours(Streaming(), 8)(1, 2) == ((1, 2), 8)
    plain = lambda x: x + 1
    assert queue.ours(plain, 8)(1) == 2


@pytest.mark.parametrize("name", RECURSIONS)
def test_a_stack_by_hand_gives_what_recursion_gives(name: str) -> None:
    program = RECURSIONS[name]
    inputs = program.inputs(16)
    smallest = np.argsort(sum(np.asarray(x) for x in inputs))[:4]
    inputs = jax.tree.map(lambda a: a[smallest], inputs)
    plain = [program.solve(*(int(x) for x in lane(inputs, k))) for k in range(4)]
    assert pcbatch.batch(program.solve)(*inputs).tolist() == plain
    assert together(program.by_hand)(*inputs).tolist() == plain


@pytest.mark.parametrize("name", RECURSIONS)
def test_the_largest_inputs_fit_their_stacks(name: str) -> None:
    program = RECURSIONS[name]
    inputs = program.inputs(64)
    result = pcbatch.batch(program.solve, max_depth=program.depth).run(*inputs)
    assert not np.any(result.status)
    np.testing.assert_array_equal(result.value, together(program.by_hand)(*inputs))


def test_eight_queens() -> None:
    queens = RECURSIONS["queens"].by_hand
    assert [int(queens(jnp.int32(2**n - 1), *[jnp.int32(0)] * 3)) for n in (4, 5, 6, 7, 8)] == [2, 10, 4, 40, 92]


def test_lanes_split_over_devices() -> None:
    square = devices.split(lambda x, y: x * x + y, (jnp.arange(4), jnp.ones(4, jnp.int32)), 2)
    assert square().tolist() == [1, 2, 5, 10]
    assert len(square().devices()) == 2


def test_vectors_beside_the_work_leave_its_result_alone() -> None:
    n = jnp.array([0, 1, 5], jnp.int32)
    beside = tuple(jnp.full((3, 2), float(k)) for k in (1, 2))
    for program in (trips.calls_beside, trips.loop_beside):
        value, total = pcbatch.batch(program)(n, beside)
        assert value.tolist() == pcbatch.batch(program)(n, ())[0].tolist()
        assert total.tolist() == [3.0, 3.0, 3.0]


def small() -> samplers.Setting:
    """A Gaussian of three numbers."""
    return samplers.correlated(3)


@pytest.mark.full_only
def test_ours_needs_as_many_batches_as_the_longest_chain() -> None:
    count, wanted = samplers.batches(small(), 4, 3, max_depth=samplers.TREE_DEPTH + 3)
    assert wanted.shape == (4, 3)
    evaluated = samplers.LEAF * -(-wanted // samplers.LEAF)  # the first doubling of a draw wants one gradient of a leaf
    assert count == evaluated.sum(axis=1).max()


@pytest.mark.full_only
@pytest.mark.parametrize("name", samplers.PEERS)
def test_samplers_give_draws_and_gradients(name: str) -> None:
    pytest.importorskip(name)
    sampler = samplers.PEERS[name](small(), 4, 3)
    draws, gradients = jax.jit(sampler.run)(*sampler.arguments)
    assert draws.shape == (4, 3, 3) and gradients.shape == (4, 3)
    assert np.all(np.asarray(gradients) > 0) and np.all(np.isfinite(draws))
    assert 0 < samplers.utilisation(np.asarray(gradients)) <= 1


def test_the_regression_starts_at_its_mode() -> None:
    target = samplers.logistic(200, 3)
    mode, covariance = samplers.laplace(target)
    np.testing.assert_allclose(jax.grad(target.logp)(mode), np.zeros(3), atol=1e-2)
    assert np.all(np.linalg.eigvalsh(covariance) > 0)


def test_goals() -> None:
    assert Row("a", 1.0, "s").met is None
    assert Row("a", 1.0, "s", goal=1.0).met and not Row("a", 1.1, "s", goal=1.0).met
    assert Row("a", 1.0, "x", goal=1.0, at_least=True).met and not Row("a", 0.9, "x", 1.0, True).met
    counted = nuts._counted("t", (10, np.array([[4, 6], [1, 2]])), possible=20.0, goal=0.95)
    assert [row.met for row in counted] == [True, None, False]


def test_the_json_of_a_run_holds_every_number(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    rows = [Row("t", 2.0, "s"), Row("ratio", 0.5, "x", 3.0, True, "peer (s)", 1.0)]
    common.report("title", rows, str(tmp_path / "part.json"), [Curve("depth", "fib", [32, 64], [1.0, 2.0])])
    assert "MISSED (>= 3) against peer (s)" in capsys.readouterr().out
    found = json.loads((tmp_path / "part.json").read_text(encoding="utf-8"))
    assert set(found) == {"title", "date", "machine", "versions", "rows", "curves"}
    assert found["rows"][1] == {
        "name": "ratio",
        "value": 0.5,
        "unit": "x",
        "goal": 3.0,
        "at_least": True,
        "baseline": "peer (s)",
        "against": 1.0,
        "met": False,
    }
    assert {"device", "cores", "threads of XLA", "python"} <= set(found["machine"])
    assert found["versions"]["jax"] == jax.__version__


def job(name: str, **more: Any) -> dict[str, Any]:
    return {"name": name, "command": f"python -m {name}", "seconds": 1.0, **more}


def test_the_summary_has_a_table_for_each_job_and_the_pictures(tmp_path: Path) -> None:
    pytest.importorskip("matplotlib")
    rows = [Row("t", 2.0, "s", 3.0), Row("ratio", 0.5, "x", 3.0, True, "peer (s)", 1.0)]
    curves = [
        Curve("depth", "fib", [32, 64], [1.0, 2.0]),
        Curve("queues", "goal", ["ode"], [3.0]),
        Curve("queues", "goal", ["fit"], [1.4]),
    ]
    jobs = [job("good", **common.content("title", rows, curves)), job("bad", error="Traceback")]
    found = summary.summary(jobs, quick=True, commit="abc")
    assert found["goals"] == {"met": 1, "missed": 1}
    written = summary.write(found, tmp_path / "out")
    assert [path.name for path in written] == ["benchmarks.json", "benchmarks.md", "depth.png", "queues.png"]
    assert all(path.stat().st_size for path in written)
    assert json.loads(written[0].read_text(encoding="utf-8"))["jobs"][1]["error"] == "Traceback"
    text = written[1].read_text(encoding="utf-8")
    assert "| ratio | 0.5 x | >= 3: **missed** | peer (s): 1 |" in text
    assert "| t | 2 s | <= 3: met |  |" in text
    assert "## bad" in text and "Traceback" in text


@pytest.mark.parametrize("each", JOBS, ids=lambda each: each.name)
def test_jobs_have_arguments_that_their_modules_know(each: Job) -> None:
    module = each.module if each.module != "benchmarks.queues" else "benchmarks.queues.__main__"
    for quick in (True, False):
        assert importlib.import_module(module).parse([*each.arguments(quick), "--json", "x"]).json == "x"


def test_jobs_are_chosen_by_name_or_by_its_beginning() -> None:
    assert [each.name for each in chosen_jobs(["recursion", "fib"])] == ["fib", "recursion-one", "recursion-four"]
    assert chosen_jobs(None) == list(JOBS)


def test_a_job_that_fails_says_how() -> None:
    found = run(Job("lost", "benchmarks.lost"), quick=True)
    assert "No module named benchmarks.lost" in found["error"]
    assert found["command"] == "python -m benchmarks.lost --repeats 3"


def test_stages_of_a_first_call() -> None:
    found = compile_stages.spent(compile_stages.forward("bouncing_ball"))
    assert tuple(found.seconds) == compile_stages.STAGES
    assert all(seconds >= 0 for seconds in found.seconds.values())
    assert found.seconds[compile_stages.XLA] > 0 and found.modules >= 1
    lines = compile_stages.table("one", {"bouncing_ball": found})
    assert lines[2].startswith("| `bouncing_ball` |") and lines[-1].startswith("| worst |")


def test_programs_of_fifty_lines_are_that_long() -> None:
    for program in PROGRAMS.values():
        assert 34 <= len(inspect.getsource(program.function).splitlines()) <= 60, program.name
        assert {len(leaf) for leaf in jax.tree.leaves(program.arguments(3))} == {3}


@pytest.mark.promotion("standard")
@pytest.mark.parametrize("name", ["lru_cache", "trie"])
def test_programs_with_classes_are_those_of_plain_python(name: str) -> None:
    function, examples = OBJECTS[name]
    found = pcbatch.batch(function)(*(argument(list(column)) for column in zip(*examples, strict=True)))
    assert [as_plain(lane_of(found, k)) for k in range(len(examples))] == [as_plain(function(*e)) for e in examples]


def test_parts_of_a_first_call() -> None:
    batched, args = first_call.first_call("mandelbrot")
    assert jax.tree.leaves(args)[0].shape == (first_call.LANES,)
    found = first_call.parts(batched, args)
    assert list(found) == list(first_call.COLUMNS)
    assert all(seconds > 0 for seconds in found.values())
    assert first_call.table({"one": found})[0].startswith("| ms | front end |")


def test_the_most_frames_in_use_of_a_recursion() -> None:
    found = frames.measure(pcbatch.batch(frames.halves), (jnp.full(1, 7, jnp.int32),), width=2, frames=None)
    assert found.calls == 20 and found.depth == 6 and found.width == 2
    assert found.depth <= found.peak <= found.bound == 6 * 3
    assert frames.row("fib", found).startswith(f"| fib | 2 | {found.pool} | {found.peak} | 6 | 18 | 20 |")


def test_queens_by_frames_of_floats() -> None:
    assert [frames.queens((1 << n) - 1, 0, 0, 0) for n in (4, 5, 6)] == [2, 10, 4]


def test_trees_of_objects_are_the_trees_of_arrays() -> None:
    found, wanted = (call() for call in tree_objects.pair("inference", 2, 3, "never"))
    np.testing.assert_allclose(found, wanted, rtol=1e-5)


def test_two_checkouts_answer_in_turn() -> None:
    class Known:
        def __init__(self, seconds: float) -> None:
            self.answer = seconds

        def seconds(self, name: str) -> float:
            return self.answer

    found = against.compared(Known(1.0), Known(0.5), "fib", 3)
    assert found == (1.0, 0.5, 2.0)
    assert against.row("fib", found) == "| fib | 1000.00 | 500.00 | 2.000 SLOWER |"
    assert against.row("fib", (1.0, 1.0, 1.0)).endswith("| 1.000 |")
    with against.checked_out(str(against.ROOT)) as folder:
        assert folder == against.ROOT


def test_no_schedule_makes_fewer_visits_than_the_bound(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(policies, "FEW", (2,))
    rows = [line.split("|") for line in policies.small().splitlines()[2:]]
    assert [(int(row[3]) >= int(row[4])) for row in rows] == [True, True]


@pytest.mark.parametrize("name", break_even.SHAPES)
@pytest.mark.promotion("standard")
def test_break_even_compares_the_same(name: str) -> None:
    shape, cost = break_even.SHAPES[name], break_even.COSTS["cheap"]
    given = break_even.inputs(shape, cost, "long tail", 5)
    ours, peer = pcbatch.batch(shape.ours(cost.block)), jax.vmap(shape.by_hand(cost.block))
    for mine, theirs in zip(jax.tree.leaves(ours(*given)), jax.tree.leaves(peer(*given)), strict=True):
        np.testing.assert_allclose(mine, theirs, rtol=1e-5)


def test_narrowing_compares_the_same() -> None:
    shape, cost = break_even.SHAPES["flat"], break_even.COSTS["cheap"]
    assert narrowing.cell(shape, cost, "long tail", 9, repeats=1).count(", ") == 3


def test_ratios_of_the_break_even() -> None:
    number = break_even.Number(by_hand=2.0, ours=4.0, ratio=0.5)
    assert break_even.cell(number, times=False) == "0.5"
    assert break_even.cell(number, times=True) == "0.5 (2.00, 4.00)"
    assert break_even.cell(break_even.Number(240.0, 20.0, 12.03), times=False) == "12"


def test_programs_of_strangers_have_names_and_leave_their_arguments_alone() -> None:
    assert len({program.name for program in STRANGERS}) == len(STRANGERS) >= 32
    for program in STRANGERS:
        examples = program.examples(random.Random(1), 3)
        assert examples == program.examples(random.Random(1), 3), program.name
        wanted = [program.function(*example) for example in examples]
        assert [program.function(*example) for example in examples] == wanted, program.name
        assert examples == program.examples(random.Random(1), 3), program.name


def insertion_sort() -> Program:
    (program,) = (program for program in sorting.PROGRAMS if program.function is sorting.insertion_sort)
    return program


def test_lanes_that_differ_from_cpython_are_not_measured() -> None:
    program = insertion_sort()
    examples = program.examples(random.Random(0), 3)
    found = pcbatch.batch(program.function)(argument([xs for (xs,) in examples]))
    cpython.check(program, examples, found)
    with pytest.raises(SystemExit, match="insertion sort: lane 0 of .* instead of"):
        cpython.check(program, examples[::-1], found)
    changing = Program("sort", list.sort, lambda rng, lanes: [])
    with pytest.raises(SystemExit, match="sort: lane 0 changes its arguments"):
        cpython.check(changing, [([2, 1],)], [[1, 2]])


def test_the_end_of_the_table_against_cpython() -> None:
    rows = [cpython.Measured(name, 8, 1.0, ours, first) for name, ours, first in (("a", 2.0, 1.0), ("b", 0.125, 3.0))]
    assert rows[1].line() == "| b | 8 | 1000.00 | 125.00 | 8.00 | 3.0 |"
    mean, first = cpython.summary(rows)
    assert mean == "| geometric mean | 8 | | | 2.00 | below 1 times: 1 of 2, below 2 times: 1 of 2 |"
    assert first == "| first calls | 8 | | | | median 2.0, at most 3.0 (b) |"


@pytest.mark.parametrize("cost", [1e-5, 1e-3, 1.0])
def test_short_calls_are_timed_in_batches(monkeypatch: pytest.MonkeyPatch, cost: float) -> None:
    monkeypatch.setattr(common, "cpu_seconds", lambda call, calls=1: cost if calls > 3 else 0.0)
    calls = common.calls_to_time(lambda: None)
    assert calls * cost >= common.CLOCK_SECONDS and (cost < 1 or calls <= 10)


def test_lanes_and_numba_give_the_same() -> None:
    pytest.importorskip("numba")
    assert numba_peer.by_numba(classics.queens)(np.array([4, 5, 6])).tolist() == [2, 10, 4]
    assert numba_peer.by_numba(classics.mandelbrot)(np.array([2.0, 0.0]), np.zeros(2)).tolist() == [2, 200]
    seeds = np.array([1, 7, 1000])
    wanted = [numba_peer.walk(int(seed)) for seed in seeds]
    assert numba_peer.by_numba(numba_peer.walk)(seeds).tolist() == wanted


def test_results_that_differ_from_those_of_numba_are_not_measured() -> None:
    numba_peer.check("Mandelbrot", np.arange(100), np.r_[np.arange(99), 0])
    with pytest.raises(SystemExit, match="queens: 99.0% of the lanes are equal, and 100% must be"):
        numba_peer.check("queens", np.arange(100), np.r_[np.arange(99), 0])


def test_without_numba_lanes_are_measured_alone(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(numba_peer, "numba", None)
    monkeypatch.setattr(common, "CLOCK_SECONDS", 1e-4)
    numba_peer.main(["--lanes", "2", "--only", "walk", "--repeats", "1"])
    lines = capsys.readouterr().out.splitlines()
    assert lines[0] == numba_peer.MISSING
    assert lines[3].startswith("| random walk to a barrier | 2 |  | ")


def test_the_tables_against_numba() -> None:
    rows = [numba_peer.Measured("a", 4, 1.0, 2.5, 2.0, 3.5), numba_peer.Measured("a", 8, 1.0, 4.5, 0.5, 0.1)]
    assert rows[0].line() == "| a | 4 | 2000.000 | 1000.000 | 2.000 |"
    assert numba_peer.means(rows)[1] == "| geometric mean | 8 | | | 0.500 |"
    assert numba_peer.first_calls(rows)[2] == "| a | 3.5 | 2.5 | 4.5 |"
