"""From the CFG to tasks: which calls are independent, and what the passes make of them, on programs in text form."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import pytest

from pcbatch.errors import InternalError
from pcbatch.ir.cfg import CfgProgram
from pcbatch.ir.tasks import TaskProgram
from pcbatch.ir.text.printer import print_program
from pcbatch.ir.verifier import verify
from pcbatch.lowering.analysis.constants import constants
from pcbatch.lowering.tasks import lower_tasks, pipeline
from pcbatch.lowering.tasks.linear_results import linear_calls
from pcbatch.lowering.tasks.pending_calls import waits
from pcbatch.lowering.tasks.pipeline import PASSES
from tests.ir.samples import FIB_CFG
from tests.lowering.typed import typed
from tests.oracles.interpret_cfg import interpret_cfg
from tests.oracles.interpret_tasks import interpret_tasks
from tests.oracles.numpy_jaxpr import on_numpy
from tests.oracles.text.parser import parse_program

SEEDS = range(6)


def cfg(text: str) -> CfgProgram:
    """A CFG program in text form, without its header, as the passes want it."""
    parsed = parse_program(text if text.startswith("pcir") else f"pcir 1 cfg\n{text}")
    assert isinstance(parsed, CfgProgram)
    assert verify(parsed) == ()
    return typed(parsed)


def lowered(text: str, *examples: Sequence[Any]) -> list[TaskProgram]:
    """The program of tasks after lowering and after each pass; all mean the same, in every order of tasks."""
    source = cfg(text)
    tasks = lower_tasks.run(source)
    assert tasks is not None
    programs = [tasks]
    for run in PASSES:
        programs.append(run(programs[-1]))
    wanted = [interpret_cfg(source, args)[0] for args in examples]
    for program in programs:
        assert verify(program) == (), print_program(program)
        runnable = on_numpy(program)
        for args, want in zip(examples, wanted, strict=True):
            for seed in (None, *SEEDS):
                found = interpret_tasks(runnable, args, seed=seed)[0]
                assert [float(x) for x in found] == [float(x) for x in want], (args, seed, print_program(program))
    return programs


def body(program: TaskProgram) -> str:
    """The blocks as text, without declarations."""
    lines = print_program(program).splitlines()
    first = next(k for k, line in enumerate(lines) if line.endswith(":") and not line.startswith(" "))
    return "\n".join(line for line in lines[first:-1] if not line.startswith("//"))


def function(blocks: str, variables: str, params: str = "n: i32[]", result: str = "f32[]") -> str:
    """A CFG program of one function `f` that gives `r`."""
    return f"func @f({params}) -> (r: {result}) {{\n{variables}\n{blocks}\n}}\n"


FRAMES = function(
    """bb0:
  t = { n <= 1 }
  branch t, bb1, bb2
bb1:
  r = { 0.5 }
  return
bb2:
  a = { n - 2 }
  left = call @f(a)
  b = { n - 1 }
  right = call @f(b)
  r = { left * 0.5 + right }
  return""",
    "t: bool[]  a, b: i32[]  left, right: f32[]",
)

CONDITIONAL = function(
    """bb0:
  t = { n > 0 }
  branch t, bb1, bb2
bb1:
  a = { n - 1 }
  left = call @f(a)
  jump bb3
bb2:
  left = { 0.5 }
  jump bb3
bb3:
  t = { n > 2 }
  branch t, bb4, bb5
bb4:
  b = { n - 3 }
  right = call @f(b)
  jump bb6
bb5:
  right = { 0.25 }
  jump bb6
bb6:
  r = { left - right * 0.5 }
  return""",
    "t: bool[]  a, b: i32[]  left, right: f32[]",
)

ROUNDS = function(
    """bb0:
  r = { 0.25 }
  k = { 0 }
  jump bb1
bb1:
  t = { k < n }
  branch t, bb2, bb3
bb2:
  left = call @f(k)
  a = { k // 2 }
  right = call @f(a)
  r = { r + left * right }
  k = { k + 1 }
  jump bb1
bb3:
  return""",
    "t: bool[]  a, k: i32[]  left, right: f32[]",
)

SHARED_RESULT = (
    function(
        """bb0:
  t = { n <= 1 }
  branch t, bb1, bb2
bb1:
  r = { 0.5 }
  return
bb2:
  t = { n > 3 }
  a = { n - 1 }
  w = call @f(a)
  branch t, bb3, bb4
bb3:
  x, y = call @g(a)
  jump bb5
bb4:
  x, z = call @g(a)
  jump bb5
bb5:
  b = { n - 2 }
  u = call @f(b)
  r = { x * 0.5 - u * w }
  return""",
        "t: bool[]  a, b, y, z: i32[]  x, u, w: f32[]",
    )
    + """func @g(m: i32[]) -> (p: f32[], q: i32[]) {
  c: i32[]
bb0:
  q = { m + 1 }
  c = { m - 1 }
  p = call @f(c)
  p = { p + 1.0 }
  return
}
"""
)

QUEENS = """func @queens(board: i32[], columns: i32[], left: i32[], right: i32[]) -> (r: i32[]) {
  t0, t1: bool[]  solutions, t5, free, queen, t2, t3, t4: i32[]
bb0:
  t0 = { columns == board }
  branch t0, bb1, bb2
bb1:
  r = { 1 }
  return
bb2:
  solutions = { 0 }
  free = { board & ~(columns | left | right) }
  jump bb3
bb3:
  t1 = { free != 0 }
  branch t1, bb4, bb5
bb4:
  queen = { free & -free }
  free = { free ^ queen }
  t2 = { columns | queen }
  t3 = { (left | queen) << 1 }
  t4 = { (right | queen) >> 1 }
  t5 = call @queens(board, t2, t3, t4)
  solutions = { solutions + t5 }
  jump bb3
bb5:
  r = solutions
  return
}
"""

CHAIN = function(
    """bb0:
  t = { n <= 0 }
  branch t, bb1, bb2
bb1:
  r = { 0 }
  return
bb2:
  a = { n - 1 }
  b = call @f(a)
  c = call @f(b)
  r = { c * 2 }
  return""",
    "t: bool[]  a, b, c: i32[]",
    result="i32[]",
)


def test_two_calls_meet_in_a_frame() -> None:
    """The first pass shows `frame`, `spawn` and `sync`; peeled base cases are given at once."""
    programs = lowered(FRAMES, (0,), (1,), (7,))
    assert body(programs[0]).splitlines()[-10:] == [
        "f.bb2(n):",
        "  a = { n - 2 }",
        "  frame",
        "  spawn left = f.bb0(n=a)",
        "  b = { n - 1 }",
        "  spawn right = f.bb0(n=b)",
        "  sync f.bb2.4()",
        "f.bb2.4(left, right) after sync:",
        "  r = { left * 0.5 + right }",
        "  return r",
    ]
    assert "spawn left = branch" in body(programs[-1])
    assert "give (" in body(programs[-1])
    assert [block.label for block in programs[-1].blocks] == ["f.bb0", "f.bb2", "f.bb2.4"]


def test_sums_of_integers_need_no_frame() -> None:
    """Recursive Fibonacci and queens add to their destination."""
    for text, examples in ((FIB_CFG, [(0,), (9,)]), (QUEENS, [(15, 0, 0, 0), (31, 0, 0, 0)])):
        programs = lowered(text, *examples)
        assert programs[0].sums
        assert "frame" not in body(programs[-1])
        assert "spawn return +=" in body(programs[-1])


def test_queens_is_one_block_with_four_columns() -> None:
    """The rest of the sum is always zero, so that no record holds it; the board is a constant of the example."""
    last = lowered(QUEENS, (15, 0, 0, 0))[-1]
    assert last.constants == ("board",)
    assert set(last.block("queens.bb4").params) == {"columns", "left", "right", "free"}
    assert len(last.blocks) == 2


def test_a_call_in_one_arm_is_a_spawn_with_two_ways() -> None:
    """`f(x) if t else y` costs no block of its own."""
    programs = lowered(CONDITIONAL, (0,), (1,), (6,))
    assert any(block.open for block in programs[0].blocks)
    assert not any(block.open for block in programs[-1].blocks)
    assert body(programs[-1]).count("spawn left = branch") == 1


def test_frames_in_a_loop_close_in_each_round() -> None:
    """Two calls of one round run side by side, rounds one after the other."""
    lowered(ROUNDS, (0,), (1,), (5,))


def test_calls_on_two_paths_may_share_a_result() -> None:
    """The one that gives `x` has another result beside on each path: both are waited for where the paths meet."""
    programs = lowered(SHARED_RESULT, (0,), (3,), (7,))
    assert all(not block.open or block.label != "f.bb5" for block in programs[0].blocks)


def test_dependent_calls_are_left_to_lanes() -> None:
    """A call whose argument is the result of another waits for it: nothing is gained."""
    assert lower_tasks.run(cfg(CHAIN)) is None


def test_one_call_that_adds_is_left_to_lanes() -> None:
    """A sum over a chain of calls is no reason for tasks."""
    blocks = """bb0:
  t = { n <= 0 }
  branch t, bb1, bb2
bb1:
  r = { 0 }
  return
bb2:
  a = { n - 1 }
  b = call @f(a)
  r = { b + n }
  return"""
    assert lower_tasks.run(cfg(function(blocks, "t: bool[]  a, b: i32[]", result="i32[]"))) is None


@pytest.mark.parametrize(
    ("end", "linear"),
    [
        ("r = { left + right }", {3, 1}),
        ("r = { left + right + n }", {3, 1}),
        ("r = { left - right }", set()),
        ("r = { left + 2 * right }", {1}),
        ("r = { left + left + right }", {3}),
        ("r = { jnp.maximum(left, right) }", set()),
        ("r = { left }", {1}),
        ("c = { left + right }\n  r = { c + left }", {3}),
        ("r, c = { left + right, 3 }", {3, 1}),
    ],
)
def test_terms_of_the_result(end: str, linear: set[int]) -> None:
    """A call adds to the destination if its result has the coefficient one in that of the caller."""
    text = f"""func @f(n: i32[]) -> (r: i32[]) {{
  t: bool[]  a, left, b, right, c: i32[]
bb0:
  a = {{ n - 2 }}
  left = call @f(a)
  b = {{ n - 1 }}
  right = call @f(b)
  {end}
  return
}}
"""
    assert linear_calls(cfg(text))["f"] == {("bb0", k) for k in linear}


def test_a_term_that_is_also_read_is_none() -> None:
    """What decides a branch must be known there."""
    text = FIB_CFG.replace(
        "  r = { left + right }\n", "  t0 = { left > 3 }\n  r = { left + right }\n  branch t0, bb1, bb3\nbb3:\n"
    )
    assert linear_calls(cfg(text))["fib"] == frozenset()


def test_floats_are_added_in_the_order_of_the_source() -> None:
    """Sums of floats depend on the order of their terms."""
    text = FIB_CFG.replace("(r: i32[])", "(r: f32[])").replace(
        "t1, left, t2, right: i32[]", "t1, t2: i32[]  left, right: f32[]"
    )
    assert linear_calls(cfg(text.replace("r = { 1 }", "r = { 1.0 }")))["fib"] == frozenset()
    lowered(text.replace("r = { 1 }", "r = { 1.0 }"), (6,))


def test_constants_are_parameters_that_every_call_passes_on() -> None:
    """One that a call changes is none, nor one that the function assigns."""
    found = constants(cfg(QUEENS))
    assert found == {("queens", "board"): ("queens", "board")}


def test_calls_are_waited_for_where_a_result_is_read() -> None:
    """And not before: both calls are pending at the sum."""
    source = cfg(FRAMES)
    found = waits(source.functions[0], (), ())
    assert found.together
    assert found.before["bb2"] == {4}
    assert not waits(cfg(CHAIN).functions[0], (), ()).together


def test_what_ends_in_a_sum_adds() -> None:
    """A function whose last call adds to its destination adds its other results there as well."""
    head = """func @start(n: i32[]) -> (r: i32[]) {
  t: bool[]
bb0:
  t = { n > 5 }
  branch t, bb1, bb2
bb1:
  r = { 7 }
  return
bb2:
  r = call @fib(n)
  return
}
"""
    programs = lowered("pcir 1 cfg\n" + head + FIB_CFG.removeprefix("pcir 1 cfg\n"), (9,), (4,))
    assert programs[0].sums == {"start", "fib"}


def test_passes_are_verified() -> None:
    program = lower_tasks.run(cfg(FRAMES))
    assert program is not None
    wrong = replace(program, blocks=program.blocks[:1])
    with pytest.raises(InternalError, match="after peel"):
        pipeline.checked(wrong, "peel")
