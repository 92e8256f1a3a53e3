"""The machine of lists against plain functions: widths, pools down to the smallest, growing lists."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from pcbatch.ir.forks import Fork
from pcbatch.ir.ops import Fail
from pcbatch.ir.tasks import Finish, OpenFrame, Spawn, Start, TaskBlock, TaskProgram
from pcbatch.ir.verifier import verify
from pcbatch.runtime.tasks import TaskExecutable, TaskOptions, lists, sizes, state
from pcbatch.runtime.tasks.reading import TaskMachine
from pcbatch.runtime.tasks.trip import Trips
from tests.runtime import task_programs as programs

pytestmark = [pytest.mark.share(2), pytest.mark.older_emitters]

N = np.array([0, 9, 1, 2, 14, 3, 0], np.int32)
FIB = [programs.fib(int(n)) for n in N]
Sized = Mapping[str, Any]
ONE: Sized = {"width": 1, "frames": 7, "reserve": 0, "room": 3}
FOUR: Sized = {"width": 4, "frames": 9, "reserve": 2, "room": 8}
WIDE: Sized = {"width": 64}
every_size = pytest.mark.parametrize("options", [ONE, FOUR, WIDE], ids=["1", "4", "64"])


def values(program: TaskProgram, args: Mapping[str, Any], lanes: int, **options: Any) -> list[np.ndarray]:
    """The results of a run, after one that has left its arrays."""
    executable = TaskExecutable(program, TaskOptions(**options))
    executable.run(args, lanes)
    return [np.asarray(value) for value in executable.run(args, lanes).raw.values]


@pytest.mark.in_place
@every_size
@pytest.mark.parametrize("make", [programs.fib_frames, programs.fib_sums])
def test_examples_of_fibonacci(make: Callable[[], TaskProgram], options: Sized) -> None:
    assert values(make(), {"n": N}, 7, **options)[0].tolist() == FIB


def test_a_block_after_a_sync_may_take_nothing() -> None:
    found = values(programs.ignored_results(), {"n": N}, 7, width=16)[0]
    assert found.tolist() == [1 if n <= 1 else 7 for n in N]


def test_calls_on_two_paths_may_give_one_variable() -> None:
    """Each path finds it where its own call has left it."""
    program = programs.one_name_on_two_paths()
    assert verify(program) == ()
    found = values(program, {"n": N}, 7, width=16)[0]
    assert found.tolist() == [n + 19 + n + 19 if n % 2 else n + 10 for n in N]


@pytest.mark.parametrize("make", [programs.fib_plain_frames, lambda: programs.fib_sums(peeled=False)])
def test_calls_whose_first_test_stands_in_the_callee(make: Callable[[], TaskProgram]) -> None:
    assert values(make(), {"n": N}, 7, **FOUR)[0].tolist() == FIB


@pytest.mark.parametrize("make", [programs.fib_frames, programs.fib_sums])
def test_one_example(make: Callable[[], TaskProgram]) -> None:
    executable = TaskExecutable(make(), TaskOptions(width=16))
    assert [int(executable.run({"n": N[k : k + 1]}, 1).raw.values[0][0]) for k in range(7)] == FIB


def test_an_argument_without_lanes_is_that_of_all_examples() -> None:
    assert values(programs.fib_sums(), {"n": np.int32(9)}, 3, width=16)[0].tolist() == [55] * 3


@pytest.mark.in_place
@pytest.mark.parametrize(("lanes", "options"), [(1, FOUR), (5, FOUR), (5, WIDE)])
def test_trees_with_constants_and_two_results(lanes: int, options: Sized) -> None:
    rng = np.random.default_rng(0)
    w, e = (rng.normal(size=shape).astype(np.float32) for shape in ((5, 5), (7, 5)))
    trees = [programs.tree(k, leaves) for k, leaves in enumerate([9, 1, 16, 2, 5][:lanes])]
    left, right, word = (np.stack(x) for x in zip(*trees, strict=True))
    args = {"w": w, "e": e, "left": left, "right": right, "word": word}
    h, c = values(programs.treelstm(), args, lanes, **options)
    for k, one in enumerate(trees):
        for found, wanted in zip((h[k], c[k]), programs.encode(w, e, *one), strict=True):
            np.testing.assert_allclose(found, wanted, rtol=2e-5, atol=1e-6)


@pytest.mark.in_place
@every_size
def test_a_frame_that_is_open_around_a_loop(options: Sized) -> None:
    n, width = np.array([0, 3, 5, 1, 4], np.int32), np.array([4, 2, 1, 5, 3], np.int32)
    wanted = [programs.paths(*map(int, x)) for x in zip(n, width, strict=True)]
    assert values(programs.loop_into_frame(), {"n": n, "width": width}, 5, **options)[0].tolist() == wanted


@pytest.mark.share(3)
@every_size
def test_results_that_become_rows(options: Sized) -> None:
    n, width = np.array([0, 3, 4, 1, 2], np.int32), np.array([4, 2, 4, 7, 3], np.int32)
    assert verify(programs.rows_of_frame()) == ()
    wanted = [programs.ranked(*map(int, x)) for x in zip(n, width, strict=True)]
    assert values(programs.rows_of_frame(), {"n": n, "width": width}, 5, **options)[0].tolist() == wanted


@pytest.mark.parametrize(("lanes", "options"), [(1, FOUR), (4, ONE), (4, WIDE)])
def test_a_loop_that_adds_to_its_destination(lanes: int, options: Sized) -> None:
    board = np.array([31, 15, 1, 7][:lanes], np.int32)
    zero = np.zeros_like(board)
    args = {"free": board, "columns": zero, "left": zero, "right": zero, "board": board}
    wanted = [programs.queens(int(b), 0, 0, 0, int(b)) for b in board]
    assert values(programs.queens_sums(), args, lanes, **options)[0].tolist() == wanted


@pytest.mark.share(3)
@every_size
def test_functions_that_call_each_other_and_have_other_results(options: Sized) -> None:
    n, x = np.array([0, 5, 9, 2, 7], np.int32), np.array([1, 2, 0.5, -1, 3], np.float32)
    wanted = [programs.even(int(a), np.float32(b)) for a, b in zip(n, x, strict=True)]
    np.testing.assert_allclose(values(programs.mutual(), {"n": n, "x": x}, 5, **options)[0], wanted, rtol=1e-5)


def test_no_list_gets_longer_than_its_capacity() -> None:
    """Looked at after each trip, with a pool that makes visits narrow."""
    executable = TaskExecutable(programs.fib_plain_frames(), TaskOptions(width=8, frames=60, reserve=16))
    plan, sizes = executable.plan(single=False), executable.chosen(7)
    trips = Trips(TaskMachine(plan, sizes, {}))
    s = state.begin(plan, sizes, state.empty(plan, sizes, False), {"n": jnp.asarray(N)})
    trip = jax.jit(trips.trip)
    longest = dict.fromkeys((block.label for block in plan.blocks), 0)
    while int(trips.waiting(s)):
        visits = int(s["serial"])
        s = trip(s)
        assert int(s["serial"]) > visits
        longest = {label: max(n, int(s[lists.count(label)])) for label, n in longest.items()}
    assert plan.bounded
    assert all(longest[block.label] <= sizes.capacity(plan, block) for block in plan.blocks)
    assert longest["bb0"] > sizes.lanes
    assert int(s["free:count"]) == sizes.frames
    assert sorted(np.asarray(s["free"])[: sizes.frames].tolist()) == list(range(7, 67))
    assert np.asarray(s["result:0.0"])[:14:2].tolist() == FIB


@pytest.mark.parametrize("make", [programs.fib_frames, programs.fib_sums])
def test_examples_for_which_there_is_no_memory(make: Callable[[], TaskProgram]) -> None:
    executable = TaskExecutable(make(), TaskOptions(width=4, frames=2, reserve=0, room=4, max_bytes=1))
    out = executable.run({"n": np.array([0, 30, 1], np.int32)}, 3)
    assert out.unfinished[1]
    assert all(np.asarray(out.raw.values[0])[k] == 1 for k in (0, 2) if not out.unfinished[k])
    assert np.asarray(executable.run({"n": N[:3]}, 3).raw.values[0]).tolist() == FIB[:3]


def test_statistics_and_trips() -> None:
    out = TaskExecutable(programs.fib_plain_frames(), TaskOptions(width=4, stats=True)).run({"n": N[:3]}, 3).raw
    visits, active, offered = (np.asarray(count)[:, 0] for count in out.counts)
    calls = sum(2 * f - 1 for f in FIB[:3])
    joins = (calls - 3) // 2
    assert active.tolist() == [calls, calls - joins, joins, joins]
    assert (active <= offered).all()
    assert (offered <= 4 * visits).all()
    assert int(out.trips) > 0
    assert np.asarray(out.status).tolist() == [0, 0, 0]


@pytest.mark.in_place
def test_results_stay_when_the_next_run_takes_the_arrays_over() -> None:
    executable = TaskExecutable(programs.fib_sums(), TaskOptions(width=4))
    first = executable.run({"n": N[:2]}, 2).raw.values[0]
    executable.run({"n": N[3:5]}, 2)
    assert np.asarray(first).tolist() == FIB[:2]


def test_examples_of_tasks_that_fail_are_told() -> None:
    """The others end; of those that fail nothing goes on."""
    types = programs.Types(n=programs.I32)
    test = types.prim("t", "n", lambda n: n < 2)
    blocks = (
        TaskBlock("bb0", ("n",), (test,), Fork("t", Finish(("n",)), programs.jump("bb1"))),
        TaskBlock("bb1", (), (), Fail("error", "ValueError")),
    )
    executable = TaskExecutable(TaskProgram("bb0", ("n",), ("n",), types, (), (), blocks))
    for _ in range(2):
        assert executable.run({"n": N}, 7).unfinished.tolist() == [n >= 2 for n in N.tolist()]


def siblings() -> TaskProgram:
    """`f(n) = g(n) + h(n)`: g fails for n >= 7; h recurs n times, or for ever, with a frame for each, for n >= 7."""
    t = programs.Types(n=programs.I32, m=programs.I32, k=programs.I32, a=programs.I32, b=programs.I32)
    t |= {"p": programs.I32, "q": programs.I32}
    jump, sync = programs.jump, programs.sync

    def start(label: str, **args: str) -> Start:
        return Start(label, tuple(args.items()))

    f = TaskBlock(
        "f", ("n",), (OpenFrame(), Spawn(("a",), start("g", m="n")), Spawn(("b",), start("h", k="n"))), sync("f2")
    )
    f2 = TaskBlock("f2", ("a", "b"), (t.prim("r", "a b", lambda a, b: a + b),), Finish(("r",)), joins=True)
    bad = t.prim("c", "m", lambda m: m >= 7)
    g = TaskBlock("g", ("m",), (bad,), Fork("c", jump("g1"), jump("g2", "m")))
    g1 = TaskBlock("g1", (), (), Fail("error", "ValueError"))
    g2 = TaskBlock("g2", ("m",), (t.prim("u", "m", lambda m: m + 1),), Finish(("u",)))
    h = TaskBlock("h", ("k",), (t.prim("d", "k", lambda k: k <= 0),), Fork("d", jump("h1"), jump("h2", "k")))
    h1 = TaskBlock("h1", (), (t.prim("one", "", lambda: jnp.int32(1)),), Finish(("one",)))
    less = t.prim("x", "k", lambda k: jnp.where(k >= 7, k, k - 1))
    two = (Spawn(("p",), start("h", k="x")), Spawn(("q",), start("h", k="x")))
    h2 = TaskBlock("h2", ("k",), (less, OpenFrame(), *two), sync("h3"))
    h3 = TaskBlock("h3", ("p", "q"), (t.prim("s", "p q", lambda p, q: p + q),), Finish(("s",)), joins=True)
    return TaskProgram("f", ("n",), ("r",), t, (), (), (f, f2, g, g1, g2, h, h1, h2, h3))


@pytest.mark.share(6)
@every_size
@pytest.mark.parametrize("n", [[3, 9, 6, 8, 0, 5], [9], [7, 7], [2]])
def test_siblings_of_what_has_failed_do_not_keep_others_waiting(n: list[int], options: Sized) -> None:
    """All others get their results, and what a failed example had taken is there again."""
    program = siblings()
    assert verify(program) == ()
    executable = TaskExecutable(program, TaskOptions(**{**options, "frames": 40}))
    for _ in range(2):
        out = executable.run({"n": np.array(n, np.int32)}, len(n))
        assert out.unfinished.tolist() == [k >= 7 for k in n]
        found = np.asarray(out.raw.values[0])
        assert [int(found[i]) for i, k in enumerate(n) if k < 7] == [k + 1 + 2**k for k in n if k < 7]
    args = {"n": jnp.array(n, jnp.int32)}
    _, unfinished = jax.jit(lambda args: executable.run_traced(args, len(n)))(args)
    assert len(n) == 1 or options is not WIDE or unfinished.tolist() == [k >= 7 for k in n]


def test_a_machine_of_large_results_begins_small() -> None:
    """Fewer frames and narrower visits, as frames of a usual machine would take gigabytes."""
    executable = TaskExecutable(programs.treelstm())
    plan, usual = executable.plan(single=False), executable.chosen(5)
    assert usual == sizes.chosen(plan, 5, None, None, None, None)
    small = usual
    for _ in range(40):
        small = small.smaller()
    assert (small.width, small.frames, small.smaller()) == (8, 8, small)
    assert small.room >= small.lanes + small.width
    trees = [programs.tree(k, leaves) for k, leaves in enumerate([9, 1, 16, 2, 5])]
    rng = np.random.default_rng(0)
    w, e = (rng.normal(size=shape).astype(np.float32) for shape in ((5, 5), (7, 5)))
    left, right, word = (np.stack(x) for x in zip(*trees, strict=True))
    args = {"w": w, "e": e, "left": left, "right": right, "word": word}
    executable._chosen[5] = small
    h = executable.run(args, 5).raw.values[0]
    np.testing.assert_allclose(h[2], programs.encode(w, e, *trees[2])[0], rtol=2e-5, atol=1e-6)
