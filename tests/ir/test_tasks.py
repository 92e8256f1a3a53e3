"""Task programs: text, a broken program for every rule of the verifier, and the interpreter in many orders."""

from __future__ import annotations

import json

import numpy as np
import pytest
from hypothesis import given, settings

from pcbatch.errors import InternalError
from pcbatch.ir import task_verifier
from pcbatch.ir.forks import Fork
from pcbatch.ir.interpret import LaneFailed, StepLimit
from pcbatch.ir.tasks import Finish, Give, SpawnInto, Start, TaskJump
from pcbatch.ir.text.export import to_dot, to_json
from pcbatch.ir.text.printer import print_program
from pcbatch.ir.verifier import verify
from tests.ir import strategies
from tests.ir.task_samples import ACROSS, EVERY, FAILS, FIB, FIB_SUMS, LOOP, ROWS, TREE, tasks
from tests.oracles.interpret_tasks import interpret_tasks
from tests.oracles.text.lines import ParseError
from tests.oracles.text.parser import parse_program
from tests.shares import examples


@pytest.mark.parametrize("name", EVERY)
def test_the_samples_print_as_they_are_written_and_are_valid(name):
    program = tasks(EVERY[name])
    assert print_program(program) == EVERY[name]
    assert verify(program) == ()


@pytest.mark.long
@settings(deadline=None, max_examples=examples(300, 75))
@given(strategies.task_programs)
def test_parsing_what_was_printed_gives_the_same_program(program):
    text = print_program(program)
    assert parse_program(text) == program
    assert print_program(parse_program(text)) == text


def test_trees_of_edges_and_ways():
    program = tasks(
        FIB_SUMS.replace("branch t0, return one, jump bb2(n=n)", "branch t0, return one, (branch t0, jump b(), return)")
        .replace("branch u1, give (one), bb2(n=t1)", "branch u1, (branch u2, give (), give (a, b)), bb2(n=t1, k=n)")
        .replace("branch u2, return one, jump bb2(n=t2)", "branch u2, (branch u1, return a, b), return b, a")
        .replace(", b), return", ", return b), return")
    )
    first, last = program.blocks
    assert first.terminator == Fork("t0", Finish(("one",)), Fork("t0", TaskJump("b", ()), Finish(())))
    assert last.terminator == Fork("u2", Fork("u1", Finish(("a",)), Finish(("b",))), Finish(("b", "a")))
    way = Fork("u1", Fork("u2", Give(()), Give(("a", "b"))), Start("bb2", (("n", "t1"), ("k", "n"))))
    assert last.ops[-1] == SpawnInto(way)
    assert (first.function, program.sums) == ("fib", {"fib"})


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("t0: bool[]", "t0: bool[] temp", "line 3: no storage classes in a task program"),
        ("spawn left = bb0(n=t1)", "spawn left = bb0", "line 15: expected `label(param=variable)`"),
        ("spawn left = bb0(n=t1)", "spawn left = bb0(t1)", "line 15: expected `label(param=variable)`"),
        ("spawn left = bb0(n=t1)", "spawn return = bb0(n=t1)", "line 15: expected `spawn return += way`"),
        ("spawn left = bb0(n=t1)", "spawn left = bb0(n=t1), bb1()", "line 15: expected nothing after the way"),
        ("spawn left = bb0(n=t1)", "push left", "line 15: no push in a task program"),
        ("spawn left = bb0(n=t1)", "left = call @fib(t1)", "line 15: no call in a task program"),
        ("spawn left = bb0(n=t1)", 'print("here")', "line 15: no print in a task program"),
        ("sync bb3()", "sync bb3", "line 17: expected `label(param=variable)`"),
        ("sync bb3()", "pushjump bb3, ret=bb0", "line 17: expected an operation, `jump`"),
        ("jump bb1(), jump bb2(n=n)", "(jump bb1()), bb2", "line 7: expected `branch condition, way, way`"),
        ("jump bb1(), jump bb2(n=n)", "jump bb1()", "line 7: expected a comma between the ways"),
        ("jump bb1(), jump bb2(n=n)", "(branch t0, jump bb1(), return", "line 7: expected `)`"),
        ("bb1():", "bb1:", "line 8: expected a block"),
        ("return r\n}", "return r\n", "line 20: the text ends"),
    ],
)
def test_parse_errors_name_the_line(old, new, message):
    assert old in FIB
    with pytest.raises(ParseError) as error:
        parse_program(FIB.replace(old, new, 1))
    assert str(error.value).startswith(message)


SPAWN_LEFT, SPAWN_RIGHT = "  spawn left = bb0(n=t1)\n", "  spawn right = bb0(n=t2)\n"
GIVE_TOTAL = "spawn total = give (zero)"
GIVE_ALL = "  spawn all = give (none)\n"
BROKEN = [
    # rule, sample, what is replaced by what, the whole report (None: other rules may be broken as well)
    ("label", FIB, {"bb1": "bb0"}, None),
    ("label", FIB, {"bb1": "prologue"}, ["no block may be called prologue"]),
    ("target", FIB, {"jump bb1()": "jump bb9()"}, ["bb0: bb9 does not exist"]),
    ("target", FIB, {"entry=bb0": "entry=bb9"}, ["program: bb9 does not exist"]),
    ("target", FIB, {"left = bb0(": "left = bb9("}, ["bb2: bb9 does not exist"]),
    ("target", FIB, {" after sync": ""}, ["bb2: bb3 must be `after sync`"]),
    ("target", FIB, {"bb2(n):": "bb2(n) after sync:"}, ["bb0: bb2 must not be `after sync`"]),
    ("target", FIB, {"left = bb0(n=t1)": "left = bb3()"}, ["bb2: bb3 must not be `after sync`"]),
    ("target", FIB, {"entry=bb0": "entry=bb2", "in=(n)": "in=(t1)"}, ["n is a parameter of the entry, but not of"]),
    ("declared", FIB, {"right: i32[]   t0: bool[]": "right: i32[]"}, ["bb0: the variable t0 is not declared"]),
    ("declared", FIB, {"t2, left,": "t2,"}, None),
    ("distinct", FIB, {"bb2(n):": "bb2(n, n):"}, None),
    ("distinct", TREE, {"spawn l.h, l.c": "spawn l.h, l.h", "(l.h, l.c, r.h": "(l.h, r.h", "l.c -": "l.h -"}, None),
    ("cond", FIB, {"branch t0": "branch n"}, ["bb0: the condition n is i32[], not bool[]"]),
    ("cond", TREE, {"branch t3": "branch node"}, ["inner: the condition node is i32[], not bool[]"]),
    ("kind", FAILS, {"fail error": "fail panic"}, ["fail: panic is no kind of failure"]),
    ("types", FIB, {"  t2 = { n - 1 }": "  t2 = t0", "bb2(n):": "bb2(n, t0):", "bb2(n=n)": "bb2(n=n, t0=t0)"}, None),
    ("known", TREE, {"shared (w, v)": "shared (w, v, h)"}, None),
    ("known", TREE, {"constants (left, right, value)": "constants (left, right, value, t5)"}, None),
    ("known", TREE, {"v = { w + 1 }": "v = { node + 1 }"}, ["prologue: node is read, but is not a shared variable"]),
    ("known", TREE, {"v = { w + 1 }": "v, h = { w, 1.0 }"}, ["prologue: h is written, but is not shared"]),
    ("known", TREE, {"t5 = {": "w = { 1.0 }\n  t5 = {"}, ["encode: w is a constant or shared, but the block gives it"]),
    ("known", FAILS, {"join(node, x, y)": "join(node, limit, x, y)"}, None),
    ("once", FIB, {"t2 = { n - 1 }": "t1 = { n - 1 }\n  t2 = t1"}, ["bb2: t1 has a value already"]),
    ("once", FIB, {"t1 = { n - 2 }": "n = { n - 2 }\n  t1 = n"}, ["bb2: n has a value already"]),
    ("read", FIB, {"r = { 1 }": "r = { n }"}, ["bb1: n is read, but is neither a parameter nor computed before"]),
    ("read", FIB, {"  t1 = { n - 2 }\n": "", SPAWN_LEFT: SPAWN_LEFT + "  t1 = { n - 2 }\n"}, ["bb2: t1 is read, but"]),
    ("read", FIB, {SPAWN_RIGHT: SPAWN_RIGHT + "  r = { left }\n"}, ["bb2: left is read before the sync"]),
    ("read", FIB, {"spawn right = bb0(n=t2)": "spawn right = bb0(n=left)"}, ["bb2: left is read before the sync"]),
    ("read", FIB, {"return r\nbb2": "return t1\nbb2"}, ["bb1: t1 is read, but is neither"]),
    ("read", FAILS, {"fail(node):": "fail():", "jump fail(node=node)": "jump fail()"}, ["fail: node is read, but is"]),
    ("read", LOOP, {"t = { i < n }": "t = { total < n }"}, ["head: total is read before the sync"]),
    ("bind", FIB, {"jump bb2(n=n)": "jump bb2()"}, ["bb0: the parameter n of bb2 is bound 0 times"]),
    ("bind", FIB, {"jump bb1()": "jump bb1(n=n)"}, ["bb0: bb1 has no parameter n"]),
    ("bind", FIB, {"left = bb0(n=t1)": "left = bb0(n=t1, n=t2)"}, ["bb2: the parameter n of bb0 is bound 2 times"]),
    ("bind", TREE, {"inner(node=t1)": "inner(node=t3)"}, ["inner: node is i32[], but t3 is bool[]"]),
    ("bind", FIB, {SPAWN_LEFT: ""}, ["bb2: the parameter left of bb3 is bound 0 times"]),
    ("bind", FIB, {"sync bb3()": "sync bb3(left=t1)"}, ["bb2: the parameter left of bb3 is bound, but is a result"]),
    ("bind", ACROSS, {"  spawn y = give (n)\n": ""}, ["loop: the parameter y of end is bound 0 times"]),
    ("open", FIB, {"  frame\n": ""}, None),
    ("open", FIB, {"  frame\n": "  frame\n  frame\n"}, ["bb2: a frame is open already"]),
    ("open", FIB, {"sync bb3()": "return t1", "bb3(left, right)": "bb3()", "{ left + right }": "{ 1 }"}, None),
    ("open", LOOP, {"head(n, i) in frame": "head(n, i)"}, None),
    ("open", LOOP, {"main(n):": "main(n) in frame:", "  frame\n": ""}, ["program: a task begins at main"]),
    ("open", LOOP, {"done(total) after sync": "done(total) after sync in frame"}, ["done: no frame is open after a"]),
    ("open", FIB, {"bb1():": "bb1() in frame:"}, None),
    ("pending", FIB, {SPAWN_RIGHT: SPAWN_RIGHT + SPAWN_LEFT}, ["bb2: left is spawned, but pending already"]),
    ("pending", LOOP, {"total += fib": "total = fib"}, ["body: total is spawned, but pending already"]),
    ("pending", FIB, {SPAWN_RIGHT: SPAWN_RIGHT + "  left = { 1 }\n"}, ["bb2: left is written, but pending"]),
    ("pending", LOOP, {"body(n, i) in": "body(n, i, total) in", "jump body(": "jump body(total=i, "}, None),
    ("adds", LOOP, {f"  {GIVE_TOTAL}\n": ""}, None),
    ("adds", LOOP, {GIVE_TOTAL: "spawn total = fib(m=zero)"}, ["body: total is added to, but no `give` has set it"]),
    ("adds", LOOP, {"j, total, zero": "j, zero", "t: bool[]": "t: bool[]   total: f32[]"}, None),
    ("row", ROWS, {GIVE_ALL: ""}, None),
    ("row", ROWS, {"all at i": "all at t", "body(n, i) in": "body(n, i, t) in", "jump body(": "jump body(t=t, "}, None),
    ("row", ROWS, {"none, all: i32[8]": "none: i32[8]   all: i32[]"}, None),
    ("row", ROWS, {"all at i =": "all at i +="}, None),
    ("give", ROWS, {"all at i = fib(m=i)": "all at i = give (n, i)"}, ["body: 2 values are given, not 1"]),
    ("give", ROWS, {GIVE_ALL: "  spawn all = give (n)\n"}, ["main: all is i32[8], but n is i32[]"]),
    ("finish", ROWS, {"all at i = fib(m=i)": "all at i = fib(m=i)", "none, all: i32[8]": "none, all: f32[8]"}, None),
    ("give", LOOP, {GIVE_TOTAL: "spawn total = give (zero, i)"}, ["main: 2 values are given, not 1"]),
    ("give", LOOP, {GIVE_TOTAL: "spawn total = give (t)", "  frame\n": "  t = { n > 0 }\n  frame\n"}, None),
    ("finish", FIB, {"return r\nbb2": "return r, r\nbb2"}, None),
    ("finish", TREE, {"return h, c\nleaf": "return h\nleaf"}, None),
    ("finish", TREE, {"value[node] + v }\n  return h, c": "value[node] + v }\n  return h, node"}, None),
    ("finish", FIB_SUMS, {"bb2(n=n)": "bb3(n=n)", "bb2(n):": "bb3(n):\n  return n, n\nbb2(n):"}, None),
    ("sums", FIB_SUMS, {"  sums (fib)\n": ""}, ["bb2: @fib is no sum, but has `spawn return +=`"]),
    ("sums", FIB_SUMS, {"bb2(n):": "// function @other\nbb2(n):"}, None),
    ("sums", FIB_SUMS, {"n, r, one, t1": "n, t1", "u2: bool[]": "u2: bool[]   r, one: f32[]"}, None),
]


@pytest.mark.parametrize(("rule", "sample", "changes", "messages"), BROKEN)
def test_rule(rule, sample, changes, messages):
    for old, new in changes.items():
        assert old in sample, old
        sample = sample.replace(old, new)
    faults = verify(parse_program(sample))
    mine = [str(fault) for fault in faults if fault.rule == rule]
    assert mine, faults
    if messages is not None:
        assert {fault.rule for fault in faults} == {rule}, faults
        assert len(mine) == len(messages), mine
        assert all(message in fault for fault, message in zip(mine, messages, strict=True)), mine


def test_every_rule_of_the_docstring_has_a_test():
    lines = (task_verifier.__doc__ or "").splitlines()
    rules = {line.split()[0] for line in lines if line.startswith("  ") and not line.startswith("   ")}
    assert rules == {rule for rule, *_ in BROKEN}


def test_a_task_may_go_on_in_a_function_that_sums():
    other = "// function @main\nstart(n):\n  jump bb0(n=n)\n// function @fib"
    program = tasks(FIB_SUMS.replace("entry=bb0", "entry=start").replace("// function @fib", other))
    assert verify(program) == ()
    assert everywhere(program, 6) == (13,)


def fib(n: int) -> int:
    return 1 if n <= 1 else fib(n - 1) + fib(n - 2)


def everywhere(program, *args):
    """The results, or the failure, that all orders of tasks agree on."""

    def outcome(seed: int | None) -> object:
        try:
            return interpret_tasks(program, args, {"np": np}, seed=seed)[0]
        except LaneFailed as failure:
            return str(failure)

    want = outcome(None)
    assert [outcome(seed) for seed in range(20)] == [want] * 20
    return want


@pytest.mark.parametrize("text", [FIB, FIB_SUMS])
def test_fib_in_every_order(text):
    assert [everywhere(tasks(text), n) for n in range(8)] == [(fib(n),) for n in range(8)]


def test_two_results_of_each_node():
    left, right, value, w = [1, 3, -1, 5, -1, -1, -1], [2, 4, -1, 6, -1, -1, -1], [1.0, 2, 3, 4, 5, 6, 7], 0.5

    def encode(node: int) -> tuple[float, float]:
        if left[node] < 0:
            return value[node] * w, value[node] + (w + 1)
        (lh, lc), (rh, rc) = encode(left[node]), encode(right[node])
        h = lh * w + rh * (w + 1) + value[node]
        return h, lc - 2 * rc + h

    for node in range(7):
        assert everywhere(tasks(TREE), node, left, right, value, w) == encode(node)


def test_results_become_rows():
    """Those that there are; an array that has been read stays as it is."""
    for n in (0, 3, 8, 11):
        assert everywhere(tasks(ROWS), n) == (sum(fib(k) * 50**k for k in range(min(n, 8))),)


def test_a_loop_adds_to_a_place():
    assert [everywhere(tasks(LOOP), n) for n in range(8)] == [(sum(map(fib, range(n))),) for n in range(8)]


def test_a_frame_across_a_branch_and_a_loop():
    def f(m: int) -> int:
        return m if m <= 0 else m + f(m - 1)

    def main(n: int) -> int:
        y, k = (f(n + 1), 0) if n % 2 == 0 else (n, 1)
        while k * k < n:
            k += 1
        return 100 * f(n) + 10 * y + k

    assert [everywhere(tasks(ACROSS), n) for n in range(9)] == [(main(n),) for n in range(9)]


@pytest.mark.parametrize(
    ("bad", "want"),
    [
        ([3, 12], "ValueError: node 12"),
        ([5, 9], "ValueError: node 9"),
        ([4, 12], "ValueError: node 4"),
        ([1, 1], "ValueError: node 1"),
        ([0, 0], (651,)),
    ],
)
def test_the_first_failure_counts(bad, want):
    assert everywhere(tasks(FAILS), 20, bad, 1) == want


@pytest.mark.parametrize(("bad", "want"), [(10, "ValueError: node 10"), (5, "ValueError: node 5"), (6, "early")])
def test_a_failure_with_an_open_frame_comes_after_those_of_what_was_spawned(bad, want):
    text = FAILS.replace(
        "  sync join(node=node)", "  fails = { node == 2 }\n  branch fails, jump early(), sync join(node=node)"
    )
    program = tasks(text.replace("fail(node):", 'early() in frame:\n  fail error ValueError("early")\nfail(node):'))
    assert verify(program) == ()
    assert want in everywhere(program, 12, [bad, 0], 1)


def test_what_a_failure_leaves_behind_runs_no_more():
    """A task that never ends does not hide the failure of an earlier one."""
    loop = FAILS.replace("branch leaf, return node,", "branch leaf, jump walk(node=node),")
    program = tasks(loop.replace("spawn x = walk(node=a)", "spawn x = fail(node=a)"))
    assert verify(program) == ()
    assert everywhere(program, 0, [0, 0], 0) == "ValueError: node 0"


def test_recursion_may_be_deep():
    (result,), trace = interpret_tasks(tasks(ACROSS), [3000])
    assert result == 100 * 3000 * 3001 // 2 + 10 * 3001 * 3002 // 2 + 55
    assert trace.frames == 3002


def test_counts():
    _, trace = interpret_tasks(tasks(FIB), [10])
    assert trace.blocks == {"bb0": 177, "bb1": 89, "bb2": 88, "bb3": 88}
    assert trace.texts["left + right"] == 88
    assert (trace.tasks, trace.frames) == (177, 9)
    assert interpret_tasks(tasks(FIB), [10], seed=1)[1].blocks == trace.blocks
    with pytest.raises(StepLimit):
        interpret_tasks(tasks(FIB), [10], max_steps=100)


@pytest.mark.parametrize(
    ("sample", "changes", "message"),
    [
        (FIB, {SPAWN_RIGHT: SPAWN_RIGHT + "  r = { left }\n"}, "left is read before it is written"),
        (FIB, {SPAWN_RIGHT: SPAWN_RIGHT + "  left = { 1 }\n"}, "left: written, but to be returned"),
        (FIB, {SPAWN_RIGHT: SPAWN_RIGHT + SPAWN_LEFT}, "left: spawned twice"),
        (FIB, {"sync bb3()": "sync bb3(left=t1)"}, "left: saved, but returned as well"),
        (FIB, {SPAWN_LEFT: ""}, "left is read before it is written"),
        (FIB, {"r = { 1 }": "r = { n }"}, "n is read before it is written"),
        (FIB, {"  frame\n": ""}, "bb2: spawn without a frame"),
        (FIB, {"  frame\n": "  frame\n  frame\n"}, "bb2: a frame is open already"),
        (FIB, {"sync bb3()": "return t1"}, "bb2: return with an open frame"),
        (FIB, {"jump bb2(n=n)": "jump bb2()"}, "bb2 takes"),
        (FIB, {"jump bb2(n=n)": "jump bb2(n=n, n=n)"}, "n is bound twice"),
        (FIB, {"jump bb2(n=n)": "sync bb3()"}, "bb0: sync without a frame"),
        (FIB, {"left + right }\n  return r": "left + right }\n  return r, r"}, "2 values for 1 places"),
        (FIB_SUMS, {"  sums (fib)\n": ""}, "in a function that is no sum"),
        (LOOP, {f"  {GIVE_TOTAL}\n": ""}, "total: not there yet"),
        (LOOP, {"head(n, i) in frame": "head(n, i)"}, "head: a frame is open"),
        (ROWS, {GIVE_ALL: ""}, "all: not there yet"),
        (ROWS, {"all at i": "all at j", "j = { i + 1 }": "j = { 3 }"}, "row 3 of all is spawned twice"),
    ],
)
def test_broken_programs_are_found(sample, changes, message):
    for old, new in changes.items():
        assert old in sample
        sample = sample.replace(old, new)
    with pytest.raises(InternalError, match=message):
        interpret_tasks(tasks(sample), [5], {"np": np})


@pytest.mark.parametrize("name", EVERY)
def test_json_survives_json_and_dot_has_every_block(name):
    program = tasks(EVERY[name])
    out = to_json(program)
    assert json.loads(json.dumps(out)) == out
    assert out["stage"] == "tasks"
    graph = to_dot(program)
    assert all(f'"{block.label}" [label=' in graph for block in program.blocks)


def test_edges_of_the_graph():
    graph = to_dot(tasks(FIB))
    assert '"bb2" -> "bb3" [label="sync", style=dashed];' in graph
    assert graph.count('"bb2" -> "bb0" [label="spawn", style=dotted];') == 1
    assert '"bb0" -> "bb1" [label="T"];' in graph
